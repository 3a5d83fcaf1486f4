import { spawn } from 'node:child_process';
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openOwner } from '../src/db/pool.ts';

/** A copy of the project in which one file at a time is changed, and tests are run. */

const COPIED = ['src', 'test', 'sql', 'bin', 'sdk', 'docs', 'package.json', 'tsconfig.json'];
/** A test file that takes this much longer than it should is caught in a loop, which is a failure. */
const SLOWER = 6;
const GRACE_MS = 20_000;

export type Sandbox = {
  readonly folder: string;
  /** Runs while a file of the project has another text. */
  withText<T>(path: string, text: string, run: () => Promise<T>): Promise<T>;
  /** Runs a test file until its end or its first failure. @param expectedMs how long it takes when all is well */
  runTest(name: string, expectedMs: number, env?: NodeJS.ProcessEnv): Promise<'passed' | 'failed' | 'timeout'>;
};

/** The databases of a test that was ended before it could drop them. */
async function dropDatabases(): Promise<void> {
  const owner = await openOwner(process.env['SCRIP_TEST_URL'] as string);
  const text = "select datname from pg_database where datname like 'scrip\\_test\\_%'";
  const rows = await owner.query<{ datname: string }>({ text, values: [] });
  for (const { datname } of rows) await owner.query({ text: `drop database ${datname} with (force)`, values: [] });
  await owner.close();
}

async function runTest(folder: string, name: string, expectedMs: number, env: NodeJS.ProcessEnv) {
  const reporter = join(folder, 'mutation/first-failure.cjs');
  const child = spawn(process.execPath, ['--test-reporter', reporter, `test/${name}`], {
    cwd: folder,
    // What V8 counts is exact only for what it compiles itself.
    env: {
      ...process.env,
      ...(env['NODE_V8_COVERAGE'] ? env : { ...env, NODE_COMPILE_CACHE: join(folder, 'compiled') }),
    },
    stdio: 'ignore',
    detached: true,
  });
  let timedOut = false;
  const killAll = () => {
    try {
      // With whatever it started itself.
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // All of it has ended.
    }
  };
  const timer = setTimeout(
    () => {
      timedOut = true;
      killAll();
    },
    expectedMs * SLOWER + GRACE_MS,
  );
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  clearTimeout(timer);
  killAll();
  if (code === 0) return 'passed';
  await dropDatabases();
  return timedOut ? 'timeout' : 'failed';
}

/** Makes a sandbox of the project; it is removed when `run` is over. */
export async function withSandbox(
  root: string,
  folder: string,
  run: (sandbox: Sandbox) => Promise<void>,
): Promise<void> {
  await mkdir(join(folder, 'mutation'), { recursive: true });
  try {
    for (const name of COPIED)
      await cp(join(root, name), join(folder, name), {
        recursive: true,
        filter: (path) => !/node_modules/.test(path.slice(root.length)),
      });
    await cp(join(root, 'mutation/first-failure.cjs'), join(folder, 'mutation/first-failure.cjs'));
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await run({
      folder,
      async withText(path, text, within) {
        const file = join(folder, path);
        const before = await readFile(file, 'utf8');
        await writeFile(file, text);
        return within().finally(() => writeFile(file, before));
      },
      runTest: (name, expectedMs, env = {}) => runTest(folder, name, expectedMs, env),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
