import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireArchive, segmentAt, segmentNumber } from './archive.ts';
import type { Writer } from './authenticator.ts';
import { syncFolder } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf, exists, type Folder, prepareFolder } from './folder.ts';
import { lockFolder, UseLock } from './lock.ts';
import { LogReader } from './log-reader.ts';
import { type Backup, CLUSTER, chooseBackup, copyEntry, type Entry, readEntries } from './manifest.ts';
import { openStorage } from './open-storage.ts';
import { type ArchivedLog, findGapOn, type Reached, type Restoring, runCopy } from './recover.ts';
import { type Log, ownSettingsIn, stopServer } from './server.ts';
import type { Storage } from './storage.ts';
import { copyIn, inFolder, withTemporary } from './temporary.ts';
import { findWay, type Leg, startsFrom, timelineOf } from './timelines.ts';

/**
 * Restores a backup: copied and held against its checksums beside the place of the database, started
 * there, brought to the wanted time, examined, and only then put in its place. What fails on the way
 * leaves everything as it was.
 */

export type RestoreOptions = Restoring & {
  readonly writer: Writer;
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
  /** The file with settings of the operator that the backup holds, and that are not in force. */
  readonly ownSettings: string | undefined;
};

const RESTORING = 'postgres.restore-';

/**
 * Restores a backup into a data folder that no process uses.
 * @param from a folder of backups, or a backup
 * @throws EmbeddedError, one line
 */
export async function restore(from: string, root: string, options: RestoreOptions): Promise<Restored> {
  const { backup, entries, log, way } = await choose(from, options);
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
      await log?.fetch(fetched, (segment) => comesAfter(backup, segment));
      const archived = log && { place: log.place, folder: fetched, way };
      if (archived && options.to === undefined) await requireWhole(archived, backup);
      await copyBackup(backup, entries, draft.cluster, options.signal);
      const settings = await ownSettingsIn(draft.cluster);
      const reached = await runCopy(draft, backup, { archived, to: options.to, keepsLog: true }, options);
      if (isReplacing) await stopServer(place, options.log);
      const replaced = isReplacing ? await setAside(place) : undefined;
      await rename(draft.cluster, place.cluster);
      await syncFolder(place.root);
      return { backup, replaced, ownSettings: await keepSettings(place, settings), ...reached };
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
 * Starts a copy of a backup in the folder for temporary files, examines it, and removes it. Beside the
 * backup, somebody who can write there could exchange the copy before it starts.
 * @returns the backup, and when the last transaction was committed that is in it
 * @throws EmbeddedError if the backup is damaged; what `examine` throws
 */
export async function verify(
  from: string,
  options: Restoring & { readonly writer: Writer },
): Promise<{ backup: Backup; lastTransactionAt: Date }> {
  const backup = await chooseBackup(from, undefined);
  const entries = await readEntries(backup, options.writer);
  return withTemporary(tmpdir(), options.log, async (root) => {
    const draft = copyIn(root);
    try {
      await copyBackup(backup, entries, draft.cluster, options.signal);
      const recovery = { archived: undefined, to: undefined, keepsLog: false };
      const { lastTransactionAt } = await runCopy(draft, backup, recovery, options);
      return { backup, lastTransactionAt };
    } catch (error) {
      throw explain(error, `${tmpdir()} (TMPDIR)`);
    } finally {
      await stopServer(draft, options.log);
    }
  });
}

type Chosen = {
  readonly backup: Backup;
  readonly entries: readonly Entry[];
  readonly log: LogReader | undefined;
  readonly way: readonly Leg[];
};

/** Chooses the way through the archived log, and the newest backup on it. */
async function choose(from: string, options: RestoreOptions): Promise<Chosen> {
  const { to, timeline, writer } = options;
  const backup = await chooseBackup(from, to);
  // Before its manifest decides from where the log is read.
  const entries = await readEntries(backup, writer);
  const archive = await findArchive(backup, options);
  if (!archive) return { backup, entries, log: undefined, way: [] };
  const log = await LogReader.open(archive, writer, backup.manifest.systemIdentifier);
  const way = await findWay(log, timeline, backup.manifest.timeline);
  if (startsFrom(way, backup.manifest)) return { backup, entries, log, way };
  const earlier = await chooseBackup(from, to, (manifest) => startsFrom(way, manifest)).catch(() => {
    throw new EmbeddedError(
      `no backup in ${from} belongs to timeline ${way.at(-1)?.timeline} of the archived log: choose with ` +
        `--timeline; the backup of ${backup.manifest.endedAt} is of timeline ${backup.manifest.timeline}`,
    );
  });
  return { backup: earlier, entries: await readEntries(earlier, writer), log, way };
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

/**
 * Whether a restore of a backup may need a segment. The backup holds those of its own time, complete, and
 * PostgreSQL would prefer what the archive knew of the last one.
 */
function comesAfter({ manifest }: Backup, segment: string): boolean {
  if (timelineOf(segment) === manifest.timeline) return segmentNumber(segment) > segmentAt(manifest.stopLsn);
  return segmentNumber(segment) >= segmentAt(manifest.startLsn);
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

async function copyBackup(
  backup: Backup,
  entries: readonly Entry[],
  cluster: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  await mkdir(cluster, { mode: 0o700 });
  for (const folder of backup.manifest.folders)
    await mkdir(join(cluster, folder), { recursive: true, mode: 0o700 });
  for (const entry of entries) {
    signal?.throwIfAborted();
    // The key ring is checked only: where it goes is not the database's business.
    const isOurs = entry.path.startsWith(`${CLUSTER}/`);
    await copyEntry(backup, entry, isOurs ? join(cluster, entry.path.slice(CLUSTER.length + 1)) : undefined);
  }
}

/** Keeps the present database. */
async function setAside(place: Folder): Promise<string> {
  const aside = `${place.cluster}.replaced-${new Date().toISOString().replace(/[-:.]/g, '')}`;
  await rename(place.cluster, aside);
  return aside;
}

/** Keeps the settings of the operator where no server reads them. */
async function keepSettings({ root }: Folder, settings: string): Promise<string | undefined> {
  if (settings === '') return undefined;
  const file = join(root, 'postgres.settings');
  await writeFile(file, settings, { mode: 0o600 });
  return file;
}

function explain(error: unknown, root: string): unknown {
  const code = codeOf(error) ?? '';
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new EmbeddedError(`${root} is full: free space first; everything is as it was`);
  return error;
}
