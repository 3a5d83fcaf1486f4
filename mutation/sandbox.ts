import { type ChildProcess, fork, spawn } from 'node:child_process';
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwner } from '../src/db/pool.ts';
import type { TestRequest, TestResult } from './host.ts';

/** A copy of the project in which one file at a time is changed and tests run. */

/** What is not copied. Packages are linked. */
const LEFT_OUT = /(^|\/)(node_modules|installed|results|\.git|\.cache)(\/|$)/;
/** A test file that takes this many times its usual duration, and GRACE_MS, is stuck in a loop. */
const SLOWER = 6;
const GRACE_MS = 6_000;
/** One that takes this long more than usual is stuck, too. */
const LONGER_MS = 60_000;
/** It is then run once more with this many times the limit. */
const SECOND_LIMIT = 3;
const ALONE_MS = 300_000;
/** The time in which the children of a test end after it, and write what they have covered. */
const CHILDREN_MS = 5_000;
/** A process is replaced after this many files, with everything that tests have left in it. */
const FILES_PER_HOST = 40;

type Result = 'passed' | 'failed' | 'timeout';

export type Sandbox = {
  readonly folder: string;
  /** Runs a function while a file of the project has another text. */
  withText<T>(path: string, text: string, run: () => Promise<T>): Promise<T>;
  /**
   * Runs a test file until its end or its first failure, in a running process.
   * @param expectedMs its usual duration
   */
  runTest(name: string, expectedMs: number): Promise<Result>;
  /**
   * The same in a new process, by Node's test runner.
   * @param coverage a folder for the coverage of V8
   */
  runAlone(name: string, coverage?: string): Promise<Result>;
};

/** Turns fsync off in the temporary database, which holds nothing of value. */
async function disableFsync(): Promise<void> {
  if (process.env['SCRIP_DATABASE_URL']) return;
  const owner = await openOwner(process.env['SCRIP_TEST_URL'] as string);
  for (const text of ['alter system set fsync = off', 'select pg_reload_conf()'])
    await owner.query({ text, values: [] });
  await owner.close();
  process.env['SCRIP_TEST_COPY'] = 'file_copy';
}

/** Drops the databases of tests that were killed before they could. */
async function dropDatabases(): Promise<void> {
  const owner = await openOwner(process.env['SCRIP_TEST_URL'] as string);
  const text = "select datname from pg_database where datname like 'scrip\\_test\\_%'";
  const rows = await owner.query<{ datname: string }>({ text, values: [] });
  for (const { datname } of rows)
    await owner.query({ text: `drop database if exists ${datname} with (force)`, values: [] });
  await owner.close();
}

/** Kills a process and its children. */
function killAll(child: ChildProcess): void {
  try {
    process.kill(-(child.pid as number), 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}

/** Whether a process or one of its children runs. */
function isGroup(child: ChildProcess): boolean {
  try {
    return process.kill(-(child.pid as number), 0);
  } catch {
    return false;
  }
}

async function runAlone(folder: string, name: string, coverage?: string): Promise<Result> {
  const reporter = join(folder, 'mutation/first-failure.cjs');
  // In a suite, as in test/run.ts: outside of one, Node does not wait for a hook before it starts the next.
  const suite = `require('node:test').describe('all', () => import(${JSON.stringify(`./test/${name}`)}))`;
  const child = spawn(process.execPath, ['--test-reporter', reporter, '--eval', suite], {
    cwd: folder,
    env: { ...process.env, ...(coverage && { NODE_V8_COVERAGE: coverage }) },
    stdio: 'ignore',
    detached: true,
    timeout: ALONE_MS,
  });
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  for (const until = Date.now() + CHILDREN_MS; coverage && isGroup(child) && Date.now() < until; )
    await sleep(100);
  killAll(child);
  return code === 0 ? 'passed' : 'failed';
}

/** Runs test files in a process that is kept for the next one. */
class Hosts {
  readonly #folder: string;
  #host: ChildProcess | undefined;
  #files = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async runTest(name: string, expectedMs: number): Promise<Result> {
    if (this.#files >= FILES_PER_HOST) this.close();
    const isNew = !this.#host?.connected;
    const limitMs = Math.min(expectedMs * SLOWER, expectedMs + LONGER_MS) + GRACE_MS;
    const result = await this.#ask(name, limitMs);
    if (result === 'passed' || result === 'failed') return result;
    this.close();
    // An earlier test may have broken the process, and a busy machine may have been too slow.
    if (result === 'broken') return isNew ? 'failed' : this.runTest(name, expectedMs);
    const second = await this.#ask(name, limitMs * SECOND_LIMIT);
    if (second !== 'passed') this.close();
    return second === 'broken' ? 'failed' : second;
  }

  async #ask(name: string, limitMs: number): Promise<Result | 'broken'> {
    this.#files++;
    const host = this.#open();
    const { promise, resolve } = Promise.withResolvers<Result | 'broken'>();
    const timer = setTimeout(resolve, limitMs, 'timeout');
    host.once('exit', () => resolve('broken'));
    host.once('message', ({ passed, stray }: TestResult) =>
      resolve(passed ? 'passed' : stray ? 'broken' : 'failed'),
    );
    host.send({ name } satisfies TestRequest);
    const result = await promise;
    clearTimeout(timer);
    host.removeAllListeners();
    return result;
  }

  #open(): ChildProcess {
    if (this.#host?.connected) return this.#host;
    this.close();
    this.#files = 0;
    this.#host = fork(join(this.#folder, 'mutation/host.ts'), {
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      detached: true,
    });
    return this.#host;
  }

  close(): void {
    if (this.#host) killAll(this.#host);
    this.#host = undefined;
  }
}

/** Makes a sandbox of the project, and removes it after `run`. */
export async function withSandbox(
  root: string,
  folder: string,
  run: (sandbox: Sandbox) => Promise<void>,
): Promise<void> {
  const hosts = new Hosts(folder);
  try {
    await disableFsync();
    await cp(root, folder, {
      recursive: true,
      filter: (path) => !LEFT_OUT.test(path.slice(root.length)),
    });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await run({
      folder,
      async withText(path, text, within) {
        const file = join(folder, path);
        const before = await readFile(file, 'utf8');
        await writeFile(file, text);
        return within().finally(() => writeFile(file, before));
      },
      async runTest(name, expectedMs) {
        const result = await hosts.runTest(name, expectedMs);
        if (result !== 'passed') await dropDatabases();
        return result;
      },
      runAlone: (name, coverage) => runAlone(folder, name, coverage),
    });
  } finally {
    hosts.close();
    await rm(folder, { recursive: true, force: true });
  }
}
