import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** A package as it is published: packed, and installed into an empty project. */

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const NOT_PUBLISHED = new Set(['dist', 'node_modules']);

export type Installed = {
  /** The project, whose only dependency is the package. */
  readonly folder: string;
  /** The paths in the package. */
  readonly paths: readonly string[];
  remove(): Promise<void>;
};

/**
 * Packs a copy of the sources, so that no earlier build is used, and concurrent tests do not interfere.
 * @param workspace as in `npm pack -w`
 */
export async function installPacked(workspace: 'sdk' | 'conformance'): Promise<Installed> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-client-'));
  const sources = join(folder, 'sources');
  const project = join(folder, 'project');
  await mkdir(sources);
  await mkdir(project);
  await cp(join(ROOT, 'tsconfig.json'), join(sources, 'tsconfig.json'));
  await symlink(join(ROOT, 'node_modules'), join(sources, 'node_modules'));
  const pack = async (name: string) => {
    await cp(join(ROOT, name), join(sources, name), {
      recursive: true,
      filter: (path) => !NOT_PUBLISHED.has(basename(path)),
    });
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: join(sources, name),
    });
    // Some releases of npm print the output of the build before the report.
    const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [
      { filename: string; files: { path: string }[] },
    ];
    return { file: join(folder, packed.filename), paths: packed.files.map(({ path }) => path) };
  };
  const { file, paths } = await pack(workspace);
  // The registry does not have what the client needs.
  const needed = workspace === 'sdk' ? [(await pack('verifier')).file] : [];
  await writeFile(join(project, 'package.json'), '{"type":"module","private":true}');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...needed, file], { cwd: project });
  return {
    folder: project,
    paths,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export type Node = { readonly path: string; readonly version: string };

/** The Node that runs the tests, and other versions on the PATH. */
export async function findNodes(): Promise<Node[]> {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((each) => !each.includes('node_modules'));
  const found: Node[] = [{ path: process.execPath, version: process.version }];
  for (const path of folders.map((each) => join(each, 'node'))) {
    const { stdout } = await run(path, ['--version']).catch(() => ({ stdout: '' }));
    const version = stdout.trim();
    const isSeen = found.some((each) => each.version === version);
    if (!isSeen && Number(/^v(\d+)/.exec(version)?.[1] ?? 0) >= 20) found.push({ path, version });
  }
  return found;
}
