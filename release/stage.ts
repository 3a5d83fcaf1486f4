import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * The packages as they are published. Node runs TypeScript everywhere but in node_modules, so the service
 * and what it is made of are staged without their types, line by line as they are here.
 */

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** The scope is Scrip's own; `scrip` alone belongs to somebody else. */
export const PUBLISHED = ['service', 'embedded', 'print', 'client', 'conformance', 'verifier'] as const;
export type Published = (typeof PUBLISHED)[number];

type Manifest = Readonly<Record<string, unknown>>;

/** The source of a package, and the folders and files that it holds. */
const SOURCES: Readonly<Record<Published, { readonly folder: string; readonly files: readonly string[] }>> = {
  service: {
    folder: '.',
    files: [
      'bin',
      'src',
      'sql',
      'docs/reference',
      'docs/site/dist',
      'console/dist',
      'CHANGELOG.md',
      'SECURITY.md',
    ],
  },
  embedded: { folder: 'embedded', files: ['.'] },
  print: { folder: 'print', files: ['.'] },
  client: { folder: 'sdk', files: [] },
  conformance: { folder: 'conformance', files: [] },
  verifier: { folder: 'verifier', files: [] },
};

const isStaged = (name: Published) => SOURCES[name].files.length > 0;

const read = async (path: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(ROOT, path, 'package.json'), 'utf8')) as Manifest;

/** The manifest of a staged package: what its users need, and nothing for its developers. */
async function manifestOf(name: Published): Promise<Manifest> {
  const root = await read('.');
  const own = await read(SOURCES[name].folder);
  const { version, license, homepage, repository, bugs, engines } = root;
  const { description, type, bin, dependencies, optionalDependencies } = own;
  const exports = JSON.parse(JSON.stringify(own['exports'] ?? './index.ts').replaceAll('.ts"', '.js"'));
  const shared = { version, description, license, homepage, repository, bugs, type };
  const publishConfig = { access: 'public' };
  return name === 'service'
    ? { name: '@scrip/service', ...shared, bin, engines, dependencies, optionalDependencies, publishConfig }
    : { name: `@scrip/${name}`, ...shared, exports, engines, dependencies, publishConfig };
}

/** A source without its types, and with the names of the staged files in it. */
export function strip(text: string): string {
  return stripTypeScriptTypes(text).replace(/(['"])(\.{1,2}\/[^'"\n]+)\.ts\1/g, '$1$2.js$1');
}

async function stageFile(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  if (!from.endsWith('.ts')) return cp(from, to);
  await writeFile(to.replace(/\.ts$/, '.js'), strip(await readFile(from, 'utf8')));
}

async function stage(name: Published, folder: string): Promise<void> {
  const source = SOURCES[name];
  for (const each of source.files) {
    const from = join(ROOT, source.folder, each);
    const entries = await readdir(from, { recursive: true, withFileTypes: true }).catch(() => undefined);
    if (!entries) await stageFile(from, join(folder, each));
    for (const entry of entries ?? []) {
      const path = join(entry.parentPath, entry.name);
      const within = path.slice(join(ROOT, source.folder).length);
      if (entry.isFile() && entry.name !== 'package.json' && !within.includes('/node_modules/'))
        await stageFile(path, join(folder, within));
    }
  }
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  if (source.folder === '.') await cp(join(ROOT, 'README.md'), join(folder, 'README.md'));
  // The command runs what was staged.
  const command = join(folder, 'bin', 'scrip.cjs');
  if (name === 'service')
    await writeFile(command, (await readFile(command, 'utf8')).replaceAll('main.ts', 'main.js'), {
      mode: 0o755,
    });
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(await manifestOf(name), undefined, 2)}\n`);
}

/**
 * Packs a package into a folder.
 * @param name one of those that are published
 * @returns the file, and the paths in it
 */
export async function pack(name: Published, out: string): Promise<{ file: string; paths: string[] }> {
  await mkdir(out, { recursive: true });
  const staged = join(out, `staged-${name}`);
  const cwd = isStaged(name) ? staged : join(ROOT, SOURCES[name].folder);
  try {
    if (isStaged(name)) await stage(name, staged);
    const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', out], {
      cwd,
    });
    // Some releases of npm print the output of the build before the report.
    const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [
      { filename: string; files: { path: string }[] },
    ];
    return { file: join(out, packed.filename), paths: packed.files.map(({ path }) => path) };
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}
