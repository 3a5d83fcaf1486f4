import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ARCHIVE_COMMAND, ARCHIVE_NOTHING, SPOOL } from './archive.ts';
import { ADDRESS, configuration, FIRST_FILES, OWN_FILES } from './configuration.ts';
import { EmbeddedError } from './error.ts';
import {
  choosePort,
  type Folder,
  newSettings,
  readSettings,
  SETTINGS_FILE,
  type Settings,
  saveSettings,
} from './folder.ts';
import { findServer, isServer, pidFile, readPidFile, type Server } from './process.ts';
import { findPrograms, findReason, type Programs } from './programs.ts';

/**
 * The server: created, started, stopped. Everything here is done under the lock of the folder (lock.ts).
 */

/** Both a pino logger and the console are one. */
export type Log = {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(details: object, message: string): void;
};

export const MAJOR = '18';
const POLL_MS = 10;
/** Recovery after a crash takes as long as it takes; after this time the log says so. */
const SLOW_START_MS = 5_000;
/** The children of a server that was killed end by themselves, as soon as they notice. */
const ORPHANS_MS = 30_000;
/** After this the server is stopped without a last checkpoint, which only makes the next start slower. */
const STOP_MS = 60_000;
const START_ATTEMPTS = 20;
const RETRY_MS = 100;

/**
 * Starts the server of a folder that has none running, and creates its files if there are none.
 * @param owner the superuser of a new database
 * @param keepPort the port that it must have, since connections use its address already
 * @param args settings of this start only, which a restore needs
 * @throws EmbeddedError if it cannot be started
 */
export async function startServer(
  folder: Folder,
  owner: string,
  log: Log,
  keepPort: number | undefined,
  args: readonly string[] = [],
): Promise<Server> {
  await checkVersion(folder);
  const programs = await findPrograms(folder);
  let settings = await readSettings(folder);
  if (!settings) {
    // A database in use has its files: an empty one must not replace those that were removed.
    if (keepPort !== undefined)
      throw new EmbeddedError(`the files of the database are gone: ${folder.cluster}`);
    await requireNoRestore(folder);
    settings = await createCluster(folder, owner, programs, log);
  }
  await writeConfiguration(folder, settings, programs);
  // A dead server's process id may belong to another process by now, and PostgreSQL would refuse to start.
  await rm(pidFile(folder), { force: true });
  const server = await launch(folder, settings, { ...programs, args }, log, keepPort);
  if (server.port !== settings.port) await saveSettings(folder.settings, { ...settings, port: server.port });
  return server;
}

/**
 * A restore can be killed after it has set the database aside. An empty one in its place would answer that no
 * voucher exists.
 */
async function requireNoRestore({ root }: Folder): Promise<void> {
  const left = (await readdir(root)).find((name) => /^postgres\.(?:replaced|restore)-/.test(name));
  if (left === undefined) return;
  throw new EmbeddedError(
    `the data folder ${root} has no database, but what a restore left there, ${left}: run the restore ` +
      'again, or move that elsewhere to begin with an empty database',
  );
}

async function checkVersion({ root, cluster }: Folder): Promise<void> {
  const version = (await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => MAJOR)).trim();
  if (version === MAJOR) return;
  throw new EmbeddedError(
    `the data folder ${root} was made by PostgreSQL ${version}, and this is PostgreSQL ${MAJOR}: ` +
      'use the version that made it',
    'dump',
  );
}

/**
 * Creates the database's files beside their place and renames them: a start that dies leaves nothing
 * incomplete.
 */
async function createCluster(folder: Folder, owner: string, programs: Programs, log: Log): Promise<Settings> {
  log.debug('creating the database');
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
    const secure = [
      '--auth=scram-sha-256',
      `--username=${owner}`,
      `--pwfile=${password}`,
      '--data-checksums',
    ];
    await programs.run('initdb', [
      '-D',
      draft,
      '--locale=C',
      '--encoding=UTF8',
      '--no-instructions',
      ...secure,
    ]);
    await writeFirstFiles(draft, programs);
    await saveSettings(join(draft, SETTINGS_FILE), settings);
    await rename(draft, folder.cluster);
    const parent = await open(folder.root);
    await parent.sync().finally(() => parent.close());
    return settings;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw new EmbeddedError(`the database cannot be created in ${folder.root}: ${(error as Error).message}`);
  } finally {
    await rm(password, { force: true });
  }
}

/** Writes the files with settings with which a database begins, over those that are there. */
export async function writeFirstFiles(cluster: string, programs: Programs): Promise<void> {
  for (const [name, text] of Object.entries(FIRST_FILES)) {
    const file = join(cluster, name);
    await writeFile(file, text, { mode: 0o600 });
    await programs.give(file);
  }
}

/** Returns what an operator has added to the files with settings of a cluster; empty: nothing. */
export async function ownSettingsIn(cluster: string): Promise<string> {
  let settings = '';
  for (const name of OWN_FILES) {
    const first = new Set((FIRST_FILES[name] ?? '').split('\n'));
    const lines = (await readFile(join(cluster, name), 'utf8')).split('\n');
    const own = lines.filter((line) => !first.has(line) && !line.startsWith('#'));
    if (own.length > 0) settings += `# ${name}\n${own.join('\n')}\n`;
  }
  return settings;
}

async function writeConfiguration(
  { cluster }: Folder,
  { archiveDir, keepsLog }: Settings,
  programs: Programs,
): Promise<void> {
  const own = join(cluster, 'scrip.conf');
  const command = archiveDir === undefined ? ARCHIVE_NOTHING : ARCHIVE_COMMAND;
  const text = configuration(keepsLog ? '' : command);
  // A file that is right already stays as it is: on a full disk it would be lost.
  if ((await readFile(own, 'utf8').catch(() => '')) !== text) {
    await writeFile(own, text, { mode: 0o600 });
    await programs.give(own);
  }
}

/**
 * Archives the log of a running server elsewhere, or no longer, once it is asked to reload
 * (`pg_reload_conf`).
 */
export async function changeArchive(
  folder: Folder,
  settings: Settings,
  archiveDir: string | undefined,
): Promise<void> {
  const programs = await findPrograms(folder);
  if (archiveDir !== undefined) await programs.give(join(folder.root, SPOOL));
  const changed = { ...settings, archiveDir, keepsLog: undefined };
  await saveSettings(folder.settings, changed);
  await writeConfiguration(folder, changed, programs);
}

type Launching = Programs & { readonly args: readonly string[] };

/** Starts the server, on another port if its own is taken and may change. */
async function launch(
  folder: Folder,
  settings: Settings,
  programs: Launching,
  log: Log,
  keepPort: number | undefined,
): Promise<Server> {
  const deadline = performance.now() + ORPHANS_MS;
  let port = keepPort ?? settings.port;
  for (let attempts = 1; ; attempts++) {
    if (keepPort === undefined && !(await isFree(port))) {
      if (attempts >= START_ATTEMPTS) throw new EmbeddedError('no free port was found for the database');
      port = choosePort();
      continue;
    }
    const outcome = await launchOnce(folder, programs, port, log);
    if (typeof outcome !== 'string') return { pid: outcome.pid as number, port, startedHere: true };
    const isTaken = outcome.includes('Address already in use');
    const hasOrphans = outcome.includes('pre-existing shared memory block');
    if (!(isTaken ? attempts < START_ATTEMPTS : hasOrphans && performance.now() < deadline)) {
      throw new EmbeddedError(`the database does not start: ${findReason(outcome)} (more in ${folder.log})`);
    }
    if (isTaken && keepPort === undefined) port = choosePort();
    else await sleep(RETRY_MS);
  }
}

/** One attempt. Returns the server's process once it accepts connections, or its log if it ended. */
async function launchOnce(
  folder: Folder,
  programs: Launching,
  port: number,
  log: Log,
): Promise<ChildProcess | string> {
  const output = await open(folder.log, 'a', 0o600);
  try {
    const { size } = await output.stat();
    const child = programs.start(['-D', folder.cluster, '-p', String(port), ...programs.args], output.fd);
    let failure: string | undefined;
    child.on('error', (error) => {
      failure = error.message;
    });
    const slowAt = performance.now() + SLOW_START_MS;
    for (let isSlow = false; ; await sleep(POLL_MS)) {
      const note = await readPidFile(folder);
      if (note?.pid === child.pid && note?.isReady) return child;
      if (failure !== undefined) return failure;
      if (child.exitCode !== null || child.signalCode !== null)
        return (await readFile(folder.log)).subarray(size).toString();
      if (isSlow || performance.now() < slowAt) continue;
      isSlow = true;
      log.info(
        'the database was not stopped in order, and is recovering from its log: this can take a minute',
      );
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

/** Stops the server in order: it ends its connections and writes a checkpoint. */
export async function stopServer(folder: Folder, log: Log): Promise<void> {
  const server = await findServer(folder);
  if (!server) return;
  process.kill(server.pid, 'SIGINT');
  const deadline = performance.now() + STOP_MS;
  let isForced = false;
  while (await isServer(server.pid, folder)) {
    if (!isForced && performance.now() > deadline) {
      log.warn('the database does not stop: stopping it without a checkpoint');
      process.kill(server.pid, 'SIGQUIT');
      isForced = true;
    }
    await sleep(POLL_MS);
  }
}
