import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findGap, requireArchive, restoreCommand, segmentAt } from './archive.ts';
import { addressOf, connect, ownerOf } from './connect.ts';
import { syncFolder } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf, exists, type Folder, prepareFolder, readSettings, type Settings } from './folder.ts';
import { lockFolder, UseLock } from './lock.ts';
import { type Backup, CLUSTER, chooseBackup, copyEntry, KEYS, readEntries } from './manifest.ts';
import { findServer } from './process.ts';
import { findPrograms } from './programs.ts';
import { fetchLog } from './remote-log.ts';
import { type Log, startServer, stopServer } from './server.ts';
import { isRemote, openStorage, type Storage } from './storage.ts';

/**
 * Restores a backup: copied and held against its checksums beside the place of the database, started
 * there, brought to the wanted time, examined, and only then put in its place. What fails on the way
 * leaves everything as it was.
 */

export type Restoring = {
  readonly database: string;
  readonly user: string;
  readonly log: Log;
  /** Examines the restored database while it runs; what it throws ends the restore. */
  readonly examine: (addresses: { readonly url: string; readonly ownerUrl: string }) => Promise<void>;
};

export type RestoreOptions = Restoring & {
  /** The archived log to replay; null: none. Left out: the one that the backup names. */
  readonly archiveDir?: string | null | undefined;
  /** Transactions that were committed later are left out. */
  readonly to?: Date | undefined;
  /** Whether a database in the folder may be replaced. It is kept beside it. */
  readonly replace: boolean;
};

export type Restored = {
  readonly backup: Backup;
  /** When the last transaction was committed that is in the restored database. */
  readonly lastTransactionAt: Date;
  /** Whether the archived log ended before the wanted time. */
  readonly isShort: boolean;
  /** Where the replaced database lies. */
  readonly replaced: string | undefined;
};

const RESTORING = 'postgres.restore-';
const NOT_REACHED = 'recovery ended before configured recovery target was reached';

/**
 * Restores a backup into a data folder that no process uses.
 * @param from a folder of backups, or a backup
 * @throws EmbeddedError, one line
 */
export async function restore(from: string, root: string, options: RestoreOptions): Promise<Restored> {
  const backup = await chooseBackup(from, options.to);
  const archive = await findArchive(backup, options);
  const place = await prepareFolder(root);
  const unlock = await lockFolder(place);
  try {
    await requireUnused(place);
    await removeRemains(place, options.log);
    const isReplacing = await exists(place.cluster);
    if (isReplacing && !options.replace) throw await holdsData(place, backup);
    const draft = inFolder(place.root, join(place.root, `${RESTORING}${randomBytes(6).toString('hex')}`));
    const fetched = `${draft.cluster}-log`;
    try {
      await copyBackup(backup, draft.cluster);
      const archiveDir = archive && (await inReach(archive, backup, fetched));
      const reached = await runCopy(draft, backup, { archiveDir, to: options.to, keepsLog: true }, options);
      if (isReplacing) await stopServer(place, options.log);
      const replaced = isReplacing ? await setAside(place) : undefined;
      await rename(draft.cluster, place.cluster);
      await syncFolder(place.root);
      return { backup, replaced, ...reached };
    } catch (error) {
      await stopServer(draft, options.log);
      await rm(draft.cluster, { recursive: true, force: true });
      throw explain(error, place.root);
    } finally {
      await rm(fetched, { recursive: true, force: true });
    }
  } finally {
    unlock();
  }
}

/**
 * Starts a copy of a backup beside it, examines it, and removes it.
 * @returns the backup, and when the last transaction was committed that is in it
 * @throws EmbeddedError if the backup is damaged; what `examine` throws
 */
export async function verify(
  from: string,
  options: Restoring,
): Promise<{ backup: Backup; lastTransactionAt: Date }> {
  const backup = await chooseBackup(from, undefined);
  const above = isRemote(backup.path) ? tmpdir() : dirname(backup.path);
  const root = join(above, `verify-${randomBytes(6).toString('hex')}.partial`);
  try {
    await mkdir(root, { mode: 0o700 });
    const draft = inFolder(root, join(root, 'postgres'));
    try {
      await copyBackup(backup, draft.cluster);
      const recovery = { archiveDir: undefined, to: undefined, keepsLog: false };
      const { lastTransactionAt } = await runCopy(draft, backup, recovery, options);
      return { backup, lastTransactionAt };
    } finally {
      await stopServer(draft, options.log);
    }
  } catch (error) {
    throw explain(error, above);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

const inFolder = (root: string, cluster: string): Folder => ({
  root,
  cluster,
  settings: join(cluster, 'scrip.json'),
  log: join(root, 'postgres.log'),
});

/** @returns the archived log that is to be replayed; undefined: none */
async function findArchive({ manifest }: Backup, options: RestoreOptions): Promise<Storage | undefined> {
  const given = options.archiveDir === undefined ? manifest.archiveDir : options.archiveDir;
  if (given === null) {
    if (options.to === undefined) return undefined;
    throw new EmbeddedError(
      'a restore to a time needs the archived log: set SCRIP_ARCHIVE_DIR to its folder',
    );
  }
  const archive = await openStorage(given);
  await requireArchive(archive, manifest.systemIdentifier);
  const gap = await findGap(archive, segmentAt(manifest.stopLsn));
  // A restore to a time may end before it; PostgreSQL says so where it does not.
  if (gap !== undefined && options.to === undefined)
    throw new EmbeddedError(
      `the archived log in ${archive.name} lacks segment ${gap}, so what came after it cannot be restored: ` +
        'put the file back, or restore to a time before it with --to',
    );
  return archive;
}

/** @returns the folder from which PostgreSQL reads the archived log */
async function inReach(archive: Storage, { manifest }: Backup, folder: string): Promise<string> {
  if (!isRemote(archive.name)) return archive.name;
  await fetchLog(archive, folder, segmentAt(manifest.startLsn));
  return folder;
}

async function requireUnused(place: Folder): Promise<void> {
  const use = await UseLock.open(place);
  try {
    if (use.release()) return;
    throw new EmbeddedError(
      `the database in ${place.root} is in use: stop every process of the data folder first`,
    );
  } finally {
    use.close();
  }
}

async function holdsData({ root }: Folder, { manifest }: Backup): Promise<EmbeddedError> {
  return new EmbeddedError(
    `the data folder ${root} holds a database, which may be newer than the backup of ${manifest.endedAt}: ` +
      'use another folder, or add --replace, which keeps the present database beside it',
  );
}

/** What a restore left behind that was killed. */
async function removeRemains(place: Folder, log: Log): Promise<void> {
  for (const name of await readdir(place.root)) {
    if (!name.startsWith(RESTORING)) continue;
    const draft = inFolder(place.root, join(place.root, name));
    await stopServer(draft, log);
    await rm(draft.cluster, { recursive: true, force: true });
  }
}

async function copyBackup(backup: Backup, cluster: string): Promise<void> {
  const entries = await readEntries(backup);
  await mkdir(cluster, { mode: 0o700 });
  for (const folder of backup.manifest.folders)
    await mkdir(join(cluster, folder), { recursive: true, mode: 0o700 });
  for (const entry of entries) {
    // The key ring is checked only: where it goes is not the database's business.
    const isOurs = entry.path.startsWith(`${CLUSTER}/`);
    if (!isOurs && entry.path !== KEYS)
      throw new EmbeddedError(`the backup ${backup.path} is damaged: ${entry.path}`);
    await copyEntry(backup, entry, isOurs ? join(cluster, entry.path.slice(CLUSTER.length + 1)) : undefined);
  }
}

type Recovery = {
  readonly archiveDir: string | undefined;
  readonly to: Date | undefined;
  /** Whether the database lives on, and its log has to be archived once it is in its place. */
  readonly keepsLog: boolean;
};

type Reached = { readonly lastTransactionAt: Date; readonly isShort: boolean };

async function runCopy(
  draft: Folder,
  backup: Backup,
  recovery: Recovery,
  options: Restoring,
): Promise<Reached> {
  // With this file PostgreSQL begins a new timeline: what the old one archived later stays apart.
  await writeFile(join(draft.cluster, 'recovery.signal'), '', { mode: 0o600 });
  const isShort = !(await startCopy(draft, backup, recovery, options));
  const settings = (await readSettings(draft)) as Settings;
  const server = await findServer(draft);
  if (!server) throw new EmbeddedError(`the restored database does not run (more in ${draft.log})`);
  const address = (user: string, password: string, database: string) =>
    addressOf(user, password, server.port, database);
  const owner = ownerOf(options);
  const client = await connect(address(owner, settings.ownerPassword, 'postgres'));
  let lastTransactionAt: Date;
  try {
    const { rows } = await client.query<{ at: Date | null }>('select pg_last_xact_replay_timestamp() as at');
    lastTransactionAt = rows[0]?.at ?? new Date(backup.manifest.endedAt);
  } finally {
    await client.end();
  }
  await options.examine({
    url: address(options.user, settings.servicePassword, options.database),
    ownerUrl: address(owner, settings.ownerPassword, options.database),
  });
  await stopServer(draft, options.log);
  return { lastTransactionAt, isShort };
}

/** Starts the copy and brings it to the wanted time. @returns false if the archived log ends before it */
async function startCopy(
  draft: Folder,
  backup: Backup,
  recovery: Recovery,
  options: Restoring,
): Promise<boolean> {
  const { archiveDir, to, keepsLog } = recovery;
  const programs = await findPrograms(draft);
  await programs.give(draft.cluster);
  if (archiveDir !== undefined) await programs.give(archiveDir);
  const settings = {
    restore_command: restoreCommand(archiveDir),
    // The server is ready when it has left the recovery, not before.
    hot_standby: 'off',
    // The segments are kept until the service archives them.
    ...(keepsLog ? { archive_command: '' } : { archive_mode: 'off' }),
  };
  const start = (more: Readonly<Record<string, string>>) => {
    const args = Object.entries({ ...settings, ...more }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ]);
    return startServer(draft, ownerOf(options), options.log, undefined, args);
  };
  if (to === undefined) {
    await start({});
    return true;
  }
  try {
    await start({
      recovery_target_time: to.toISOString().replace('Z', '+00'),
      recovery_target_action: 'promote',
    });
    return true;
  } catch (error) {
    if (!(error as Error).message.includes(NOT_REACHED) || archiveDir === undefined) throw error;
    const gap = await findGap(await openStorage(archiveDir), segmentAt(backup.manifest.stopLsn));
    if (gap !== undefined)
      throw new EmbeddedError(
        `the archived log in ${archiveDir} lacks segment ${gap}, before ${to.toISOString()}: put the file back, or ` +
          'restore to an earlier time',
      );
    await start({});
    return false;
  }
}

/** Keeps the present database. */
async function setAside(place: Folder): Promise<string> {
  const aside = `${place.cluster}.replaced-${new Date().toISOString().replace(/[-:.]/g, '')}`;
  await rename(place.cluster, aside);
  return aside;
}

function explain(error: unknown, root: string): unknown {
  const code = codeOf(error) ?? '';
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new EmbeddedError(`${root} is full: free space first; everything is as it was`);
  return error;
}
