/**
 * Prepares a release: `npm run release`. It checks what must hold, packs the packages and writes the SBOM into
 * release/out, and prints the commands that publish them. It publishes nothing by itself.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findProblems } from './check.ts';
import { PUBLISHED, pack } from './stage.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const OUT = fileURLToPath(new URL('./out/', import.meta.url));
const SBOM_MAX_BYTES = 64 * 1024 ** 2;

const run = async (program: string, ...args: string[]) =>
  (await promisify(execFile)(program, args, { cwd: ROOT, maxBuffer: SBOM_MAX_BYTES })).stdout;

const problems = await findProblems();
if (problems.length > 0) {
  process.stderr.write(`${problems.map((each) => `- ${each}`).join('\n')}\nno release was made\n`);
  process.exitCode = 1;
} else {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  await mkdir(OUT, { recursive: true });
  await run('npm', 'run', 'prepare');
  const files: string[] = [];
  for (const name of PUBLISHED) files.push((await pack(name, OUT)).file);
  await writeFile(`${OUT}scrip-${version}.cdx.json`, await run('npm', 'sbom', '--sbom-format', 'cyclonedx'));
  const publish = files.map((file) => `npm publish ${file} --provenance --access public`);
  process.stdout.write(
    `Packed into ${OUT}. Now, in CI (provenance needs its identity):\n  git tag -s v${version} -m 'Scrip ${version}'\n` +
      `  git push origin v${version}\n  ${publish.join('\n  ')}\n`,
  );
}
