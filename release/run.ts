/**
 * Makes a release: `npm run release -- 0.1.0`. It checks what must hold, writes down the migrations, dates the
 * changelog, packs the packages and the SBOM into release/out, commits and tags. It publishes nothing, and
 * prints the commands that do. If anything fails, the work tree is as before, and there is no tag.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { dateEntry } from './changelog.ts';
import { findPlaceholders, findProblems } from './check.ts';
import { freezeMigrations } from './migrations.ts';
import { PUBLISHED, pack } from './stage.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const OUT = fileURLToPath(new URL('./out/', import.meta.url));
const CHANGELOG = join(ROOT, 'CHANGELOG.md');
/** The files that a release changes. */
const WRITTEN = ['CHANGELOG.md', 'release/migrations.sha256'];
const SBOM_MAX_BYTES = 64 * 1024 ** 2;

const run = async (program: string, ...args: string[]) =>
  (await promisify(execFile)(program, args, { cwd: ROOT, maxBuffer: SBOM_MAX_BYTES })).stdout;
const say = (...lines: string[]) => process.stdout.write(`${lines.join('\n')}\n`);

/** Writes what belongs to the release into the work tree. */
async function write(version: string): Promise<void> {
  const today = new Date().toISOString().slice(0, 10);
  await writeFile(CHANGELOG, dateEntry(await readFile(CHANGELOG, 'utf8'), version, today));
  await freezeMigrations();
}

/** Packs everything. @returns the packages of npm */
async function packAll(version: string): Promise<string[]> {
  await rm(OUT, { recursive: true, force: true });
  await mkdir(OUT, { recursive: true });
  await run('npm', 'run', 'prepare');
  const files: string[] = [];
  for (const name of PUBLISHED) files.push((await pack(name, OUT)).file);
  await writeFile(`${OUT}scrip-${version}.cdx.json`, await run('npm', 'sbom', '--sbom-format', 'cyclonedx'));
  const sums = (await readdir(OUT)).sort().map(async (name) => {
    const digest = createHash('sha256').update(await readFile(OUT + name));
    return `${digest.digest('hex')}  ${name}\n`;
  });
  await writeFile(`${OUT}SHA256SUMS`, (await Promise.all(sums)).join(''));
  return files;
}

async function release(version: string): Promise<void> {
  const problems = await findProblems(version);
  if (problems.length > 0) throw new Error(problems.map((each) => `- ${each}`).join('\n'));
  const before = await Promise.all(WRITTEN.map((path) => readFile(join(ROOT, path)).catch(() => undefined)));
  let files: string[];
  try {
    await write(version);
    files = await packAll(version);
    await run('git', 'add', ...WRITTEN);
    await run('git', 'commit', '--quiet', '--message', `Release ${version}`);
  } catch (error) {
    // Only these files: somebody may have worked on others meanwhile.
    await run('git', 'reset', '--quiet', '--', ...WRITTEN);
    for (const [at, path] of WRITTEN.entries()) {
      const content = before[at];
      await (content ? writeFile(join(ROOT, path), content) : rm(join(ROOT, path), { force: true }));
    }
    throw error;
  }
  await run('git', 'tag', '--annotate', `v${version}`, '--message', `Scrip ${version}`);
  say(
    `${version} is committed and tagged, and packed into ${OUT}. Next:`,
    `  git push origin HEAD v${version}`,
  );
  const missing = await findPlaceholders();
  if (missing.length > 0) say('It cannot be published yet:', ...missing.map((each) => `- ${each}`));
  // npm signs the provenance with the identity of the run.
  else
    say(
      'In CI:',
      ...files.map((each) => `  npm publish release/out/${basename(each)} --provenance --access public`),
    );
}

const program = new Command('npm run release --')
  .description('Make a release, with a commit, a tag and packages in release/out. Nothing is published.')
  .argument('<version>', 'that of the packages, such as 0.1.0')
  .parse();
try {
  await release(program.args[0] as string);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\nno release was made\n`);
  process.exitCode = 1;
}
