import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { requireArchive, segmentAt } from './archive.ts';
import { syncFolder } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf, exists, type Folder, prepareFolder } from './folder.ts';
import { lockFolder, UseLock } from './lock.ts';
import { type Backup, CLUSTER, chooseBackup, copyEntry, KEYS, readEntries } from './manifest.ts';
import { type ArchivedLog, findGapOn, type Reached, type Restoring, runCopy } from './recover.ts';
import { fetchLog } from './remote-log.ts';
import { type Log, stopServer } from './server.ts';
import { isRemote, openStorage, type Storage } from './storage.ts';
import { findWay, type Leg, startsFrom } from './timelines.ts';

/**
 * Restores a backup: copied and held against its checksums beside the place of the database, started
 * there, brought to the wanted time, examined, and only then put in its place. What fails on the way
 * leaves everything as it was.
 */

export type RestoreOptions = Restoring & {
  /** The archived log to replay; null: none. Left out: the one that the backup names. */
  readonly archiveDir?: string | null | undefined;
  /** Transactions that were committed later are left out. */
  readonly to?: Date | undefined;
  /** The timeline of the log to follow; left out: the newest. */
  readonly timeline?: number | undefined;
  /** Whether a database in the folder may be replaced. It is kept beside it. */
  readonly replace: boolean;
};

export type Restored = Reached & {
  readonly backup: Backup;
  /** Where the replaced database lies. */
  readonly replaced: string | undefined;
};

const RESTORING = 'postgres.restore-';

/**
 * Restores a backup into a data folder that no process uses.
 * @param from a folder of backups, or a backup
 * @throws EmbeddedError, one line
 */
export async function restore(from: string, root: string, options: RestoreOptions): Promise<Restored> {
  const { backup, archive, way } = await choose(from, options);
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
      const archived = archive && {
        place: archive.name,
        folder: await inReach(archive, backup, fetched),
        way,
      };
      if (archived && options.to === undefined) await requireWhole(archived, backup);
      await copyBackup(backup, draft.cluster);
      const reached = await runCopy(draft, backup, { archived, to: options.to, keepsLog: true }, options);
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
      const recovery = { archived: undefined, to: undefined, keepsLog: false };
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

type Chosen = {
  readonly backup: Backup;
  readonly archive: Storage | undefined;
  readonly way: readonly Leg[];
};

/** Chooses the way through the archived log, and the newest backup on it. */
async function choose(from: string, options: RestoreOptions): Promise<Chosen> {
  const { to, timeline } = options;
  const backup = await chooseBackup(from, to);
  const archive = await findArchive(backup, options);
  if (!archive) return { backup, archive, way: [] };
  const way = await findWay(archive, timeline, backup.manifest.timeline);
  if (startsFrom(way, backup.manifest)) return { backup, archive, way };
  const earlier = await chooseBackup(from, to, (manifest) => startsFrom(way, manifest)).catch(() => {
    throw new EmbeddedError(
      `no backup in ${from} belongs to timeline ${way.at(-1)?.timeline} of the archived log: choose with ` +
        `--timeline; the backup of ${backup.manifest.endedAt} is of timeline ${backup.manifest.timeline}`,
    );
  });
  return { backup: earlier, archive, way };
}

/** @returns the archived log that is to be replayed; undefined: none */
async function findArchive({ manifest }: Backup, options: RestoreOptions): Promise<Storage | undefined> {
  const given = options.archiveDir === undefined ? manifest.archiveDir : options.archiveDir;
  if (given === null) {
    if (options.to === undefined && options.timeline === undefined) return undefined;
    throw new EmbeddedError(
      `a restore to a ${options.to ? 'time' : 'timeline'} needs the archived log: set SCRIP_ARCHIVE_DIR to its folder`,
    );
  }
  const archive = await openStorage(given);
  await requireArchive(archive, manifest.systemIdentifier);
  return archive;
}

/** A restore to a time may end before a gap; PostgreSQL says so where it does not. */
async function requireWhole(archived: ArchivedLog, backup: Backup): Promise<void> {
  const gap = await findGapOn(archived, backup);
  if (gap === undefined) return;
  throw new EmbeddedError(
    `the archived log in ${archived.place} lacks segment ${gap}, so what came after it cannot be restored: ` +
      'put the file back, or restore to a time before it with --to',
  );
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
    `the data folder ${root} contains a database, which may be newer than the backup of ${manifest.endedAt}: ` +
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
