/**
 * Lists how old the dependencies are: `npm run ages`. For each direct one: its version and when that
 * was published, the newest version and when that was. The exit status is 1 where a package has published
 * nothing for two years: look for a successor. Only the version that the authors call the latest counts:
 * registries show odd dates of old versions.
 */
import { execFile } from 'node:child_process';
import { glob, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const MONTH_MS = 30 * 86_400_000;
const SILENT_MAX_MONTHS = 24;

type Manifest = Readonly<
  Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Record<string, string>>
>;
type Published = { readonly 'dist-tags': { readonly latest: string }; readonly time: Record<string, string> };

/** The direct dependencies of all packages of the project, with their pinned versions. */
async function listDependencies(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const path of glob(['package.json', '*/package.json'], { cwd: ROOT })) {
    const manifest: Partial<Manifest> = JSON.parse(await readFile(ROOT + path, 'utf8'));
    for (const part of [manifest.dependencies, manifest.devDependencies, manifest.optionalDependencies])
      for (const [name, version] of Object.entries(part ?? {}))
        if (!name.startsWith('@scrip/')) found.set(name, version);
  }
  return new Map([...found].sort());
}

async function readPublished(name: string): Promise<Published> {
  const { stdout } = await promisify(execFile)('npm', ['view', name, 'dist-tags', 'time', '--json'], {
    cwd: ROOT,
  });
  return JSON.parse(stdout);
}

const monthsSince = (time = '') => Math.floor((Date.now() - Date.parse(time)) / MONTH_MS);

const ages: Record<string, Record<string, string | number>> = {};
for (const [name, version] of await listDependencies()) {
  const {
    'dist-tags': { latest },
    time,
  } = await readPublished(name);
  const silent = monthsSince(time[latest]);
  if (silent >= SILENT_MAX_MONTHS) process.exitCode = 1;
  ages[name] = { version, 'months old': monthsSince(time[version]), newest: latest, 'months silent': silent };
}
console.table(ages);
