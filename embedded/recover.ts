import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findGap, restoreCommand, segmentAt } from './archive.ts';
import { addressOf, connect, ownerOf } from './connect.ts';
import { EmbeddedError } from './error.ts';
import { type Folder, readSettings, type Settings, saveSettings } from './folder.ts';
import type { Backup } from './manifest.ts';
import { findServer } from './process.ts';
import { findPrograms } from './programs.ts';
import { type Log, startServer, stopServer } from './server.ts';
import { openStorage } from './storage.ts';
import { goesThrough, type Leg, readForks } from './timelines.ts';

/** Starts the copy of a backup, brings it to the wanted time, examines it and stops it. */

export type Restoring = {
  readonly database: string;
  readonly user: string;
  readonly log: Log;
  /** Examines the restored database while it runs; what it throws ends the restore. */
  readonly examine: (addresses: { readonly url: string; readonly ownerUrl: string }) => Promise<void>;
};

const NOT_REACHED = 'recovery ended before configured recovery target was reached';

/** The archived log. */
export type ArchivedLog = {
  /** Its name. */
  readonly place: string;
  /** The folder from which PostgreSQL reads it. */
  readonly folder: string;
  /** The way that the restore takes through it. */
  readonly way: readonly Leg[];
};

/** @returns the number of the first segment that a restore would miss, or undefined */
export async function findGapOn(
  { folder, way }: ArchivedLog,
  { manifest }: Backup,
): Promise<number | undefined> {
  return findGap(await openStorage(folder), segmentAt(manifest.stopLsn), (segment) =>
    goesThrough(way, segment),
  );
}

type Recovery = {
  readonly archived: ArchivedLog | undefined;
  readonly to: Date | undefined;
  /** Whether the database lives on, and its log has to be archived once it is in its place. */
  readonly keepsLog: boolean;
};

export type Reached = {
  /** When the last transaction was committed that is in the restored database. */
  readonly lastTransactionAt: Date;
  /** Whether the archived log ended before the wanted time. */
  readonly isShort: boolean;
  /** The timelines that it left where an earlier restore had left them. */
  readonly forks: readonly Leg[];
};

export async function runCopy(
  draft: Folder,
  backup: Backup,
  recovery: Recovery,
  options: Restoring,
): Promise<Reached> {
  // With this file PostgreSQL begins a new timeline: what the old one archived later stays apart.
  await writeFile(join(draft.cluster, 'recovery.signal'), '', { mode: 0o600 });
  const copied = (await readSettings(draft)) as Settings;
  // Only the service may archive it: a copy that is merely tried out would add a timeline, and restores
  // follow the newest one.
  await saveSettings(draft.settings, { ...copied, archiveDir: undefined, keepsLog: recovery.keepsLog });
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
  const forks = await readForks(draft, backup.manifest.timeline, recovery.to);
  return { lastTransactionAt, isShort, forks };
}

/** Starts the copy and brings it to the wanted time. @returns false if the archived log ends before it */
async function startCopy(
  draft: Folder,
  backup: Backup,
  recovery: Recovery,
  options: Restoring,
): Promise<boolean> {
  const { archived, to, keepsLog } = recovery;
  const programs = await findPrograms(draft);
  await programs.give(draft.cluster);
  if (archived) await programs.give(archived.folder);
  const settings = {
    restore_command: restoreCommand(archived?.folder),
    ...(archived && { recovery_target_timeline: String(archived.way.at(-1)?.timeline) }),
    // The server is ready when it has left the recovery, not before.
    hot_standby: 'off',
    ...(!keepsLog && { archive_mode: 'off' }),
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
    if (!(error as Error).message.includes(NOT_REACHED) || !archived) throw error;
    const gap = await findGapOn(archived, backup);
    if (gap !== undefined)
      throw new EmbeddedError(
        `the archived log in ${archived.place} lacks segment ${gap}, before ${to.toISOString()}: put the file back, or ` +
          'restore to an earlier time',
      );
    await start({});
    return false;
  }
}
