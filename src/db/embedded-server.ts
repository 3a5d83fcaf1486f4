import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFile, mkdir, open, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../log.ts';
import { findPrograms, lastWords, type Programs } from './embedded-binaries.ts';
import { ADDRESS, CONFIGURATION } from './embedded-configuration.ts';
import {
  choosePort,
  type Folder,
  newSettings,
  readSettings,
  SETTINGS_FILE,
  type Settings,
  saveSettings,
} from './embedded-folder.ts';
import { StartError } from './start-error.ts';

/** The server itself: made, found, started, stopped. Everything here is done under the folder's lock. */

export const OWNER = 'scrip_owner';

const MAJOR = '18';
const LOOK_MS = 10;
/** A start after a crash reads the write-ahead log first, for as long as that takes; from here on the operator is told. */
const SLOW_START_MS = 5_000;
/** What a server that was killed leaves running ends by itself, as soon as it sees that. */
const ORPHANS_MS = 30_000;
/** After this the server is stopped without its last checkpoint, which costs time at the next start and nothing else. */
const STOP_MS = 60_000;
const PORT_TRIES = 20;
const INCLUDE = "include = 'scrip.conf'";

export type Server = { readonly pid: number; readonly port: number; readonly startedHere: boolean };

/**
 * The server of this folder: the one that runs, else a new one; its files are made where there are none yet.
 * @param keepPort the port that it must have, since connections to it are already known by it
 * @throws StartError where it cannot be started
 */
export async function ensureServer(folder: Folder, log: Logger, keepPort: number | undefined): Promise<Server> {
  const running = await findServer(folder);
  if (running) {
    if (keepPort !== undefined && running.port !== keepPort) {
      throw new StartError(
        `the database now runs on port ${running.port} instead of ${keepPort}: start this process again`,
      );
    }
    return running;
  }
  await checkVersion(folder);
  const programs = await findPrograms(folder);
  const settings = (await readSettings(folder)) ?? (await createFor(folder, programs, log, keepPort));
  await writeConfiguration(folder.cluster, programs);
  const server = await startServer(folder, settings, programs, log, keepPort);
  if (server.port !== settings.port) await saveSettings(folder.settings, { ...settings, port: server.port });
  return server;
}

/** A database that is in use has its files: an empty one must not take the place of those that were removed. */
async function createFor(
  folder: Folder,
  programs: Programs,
  log: Logger,
  keepPort: number | undefined,
): Promise<Settings> {
  if (keepPort !== undefined) throw new StartError(`the files of the database are gone: ${folder.cluster}`);
  return createCluster(folder, programs, log);
}

async function writeConfiguration(cluster: string, programs: Programs): Promise<void> {
  const own = join(cluster, 'scrip.conf');
  // One that is right already stays as it is: on a full disk it would be lost.
  if ((await readFile(own, 'utf8').catch(() => '')) !== CONFIGURATION) {
    await writeFile(own, CONFIGURATION, { mode: 0o600 });
    await programs.give(own);
  }
  const main = join(cluster, 'postgresql.conf');
  if (!(await readFile(main, 'utf8')).includes(INCLUDE)) await appendFile(main, `\n${INCLUDE}\n`);
}

/** Stops the server in order: its connections end, and what is in memory goes to the disk. */
export async function stopServer(folder: Folder, log: Logger): Promise<void> {
  const server = await findServer(folder);
  if (!server) return;
  process.kill(server.pid, 'SIGINT');
  const deadline = performance.now() + STOP_MS;
  let signaled = false;
  while (await isServer(server.pid, folder)) {
    if (!signaled && performance.now() > deadline) {
      log.warn('the database does not stop: stopping it at once');
      process.kill(server.pid, 'SIGQUIT');
      signaled = true;
    }
    await sleep(LOOK_MS);
  }
}

/** Ends a server whose files were removed under it: there is nothing left that it could write to. */
export async function endServer(pid: number, folder: Folder): Promise<void> {
  if (await isServer(pid, folder)) process.kill(pid, 'SIGQUIT');
}

/** Finds the server that runs on this folder, waits until it is ready, and clears away what a dead one left. */
export async function findServer(folder: Folder): Promise<Server | undefined> {
  const file = join(folder.cluster, 'postmaster.pid');
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    const lines = text.split('\n');
    const pid = Number(lines[0]);
    if (!(await isServer(pid, folder))) {
      // Its number may belong to any other process by now, and PostgreSQL would then refuse to start.
      await rm(file, { force: true });
      return undefined;
    }
    if (lines[7]?.trim() === 'ready') return { pid, port: Number(lines[3]), startedHere: false };
    await sleep(LOOK_MS);
  }
}

/** Whether a process is the server of this folder, rather than one that got a dead server's number. */
async function isServer(pid: number, { cluster }: Folder): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  if (process.platform !== 'linux') return (await commandOf(pid)).includes(cluster);
  const [command = '', ...args] = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  if (!/\bpostgres$/.test(command)) return false;
  // The folder may have been moved since; where the system does not tell, the command line has to do.
  const at = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return at === undefined ? args.includes(cluster) : at === cluster || at === `${cluster} (deleted)`;
}

async function commandOf(pid: number): Promise<string> {
  const { execFile } = await import('node:child_process');
  return new Promise((resolve) => {
    execFile('/bin/ps', ['-o', 'command=', '-p', String(pid)], (error, output) => resolve(error ? '' : output));
  });
}

async function checkVersion({ root, cluster }: Folder): Promise<void> {
  const version = (await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => MAJOR)).trim();
  if (version !== MAJOR) {
    throw new StartError(
      `the data folder ${root} was made by PostgreSQL ${version}, and this is PostgreSQL ${MAJOR}: use the Scrip that made it, or move the data over with pg_dump`,
    );
  }
}

/** Makes the database's files beside their place and moves them there whole: a start that dies leaves nothing half made. */
async function createCluster(folder: Folder, programs: Programs, log: Logger): Promise<Settings> {
  log.debug('making the database');
  const settings = newSettings();
  for (const name of await readdir(folder.root)) {
    if (name.startsWith('postgres.new-'))
      await rm(join(folder.root, name), { recursive: true, force: true }).catch(() => {});
  }
  const draft = join(folder.root, `postgres.new-${randomBytes(6).toString('hex')}`);
  const password = `${draft}.password`;
  try {
    await mkdir(draft, { mode: 0o700 });
    await writeFile(password, settings.ownerPassword, { mode: 0o600, flag: 'wx' });
    await programs.give(draft);
    await programs.give(password);
    const secure = ['--auth=scram-sha-256', `--username=${OWNER}`, `--pwfile=${password}`, '--data-checksums'];
    await programs.run('initdb', ['-D', draft, '--locale=C', '--encoding=UTF8', '--no-instructions', ...secure]);
    await saveSettings(join(draft, SETTINGS_FILE), settings);
    await rename(draft, folder.cluster);
    const parent = await open(folder.root);
    await parent.sync().finally(() => parent.close());
    return settings;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw new StartError(`the database cannot be created in ${folder.root}: ${(error as Error).message}`);
  } finally {
    await rm(password, { force: true });
  }
}

async function startServer(
  folder: Folder,
  settings: Settings,
  programs: Programs,
  log: Logger,
  keepPort: number | undefined,
): Promise<Server> {
  const deadline = performance.now() + ORPHANS_MS;
  let port = keepPort ?? settings.port;
  for (let tries = 1; ; tries++) {
    if (keepPort === undefined && !(await isFree(port))) {
      if (tries >= PORT_TRIES) throw new StartError('no free port was found for the database');
      port = choosePort();
      continue;
    }
    const outcome = await startOnce(folder, programs, port, log);
    if (typeof outcome !== 'string') return { pid: outcome.pid as number, port, startedHere: true };
    const isTaken = outcome.includes('Address already in use');
    const hasOrphans = outcome.includes('pre-existing shared memory block');
    if (!(isTaken ? tries < PORT_TRIES : hasOrphans && performance.now() < deadline)) {
      throw new StartError(`the database does not start: ${lastWords(outcome)} (more in ${folder.log})`);
    }
    if (isTaken && keepPort === undefined) port = choosePort();
    else await sleep(100);
  }
}

/** One try. Returns the server's process once it takes connections, or what it said before it ended. */
async function startOnce(
  folder: Folder,
  programs: Programs,
  port: number,
  log: Logger,
): Promise<ChildProcess | string> {
  const output = await open(folder.log, 'a', 0o600);
  try {
    const { size } = await output.stat();
    const child = programs.start(['-D', folder.cluster, '-p', String(port)], output.fd);
    let failure: string | undefined;
    child.on('error', (error) => {
      failure = error.message;
    });
    const startedAt = performance.now();
    let told = false;
    for (;;) {
      const [pid, , , , , , , status] = (
        await readFile(join(folder.cluster, 'postmaster.pid'), 'utf8').catch(() => '')
      ).split('\n');
      if (Number(pid) === child.pid && status?.trim() === 'ready') return child;
      if (failure !== undefined) return failure;
      if (child.exitCode !== null || child.signalCode !== null)
        return (await readFile(folder.log)).subarray(size).toString();
      if (!told && performance.now() - startedAt > SLOW_START_MS) {
        log.info('the database was not stopped in order the last time, and is reading its log: this can take a minute');
        told = true;
      }
      await sleep(LOOK_MS);
    }
  } finally {
    await output.close();
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, ADDRESS, () => probe.close(() => resolve(true)));
  });
}
