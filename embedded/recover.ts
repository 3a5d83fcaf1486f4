import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { findGap, restoreCommand, segmentAt, TAIL } from './archive.ts';
import { FIRST_FILES } from './configuration.ts';
import { addressOf, connect, ownerOf, setPasswords, socketAddressOf } from './connect.ts';
import { EmbeddedError } from './error.ts';
import { type Folder, newSettings, readSettings, type Settings, saveSettings } from './folder.ts';
import type { Backup } from './manifest.ts';
import { findServer } from './process.ts';
import { findPrograms, type Programs } from './programs.ts';
import { type Log, startServer, stopServer, writeFirstFiles } from './server.ts';
import { withTemporary } from './temporary.ts';
import { goesThrough, type Leg, readForks } from './timelines.ts';

/** Starts the copy of a backup, brings it to the wanted time, examines it and stops it. */

export type Restoring = {
  readonly database: string;
  readonly user: string;
  readonly log: Log;
  /** Ends the restore while it copies or examines the backup, and removes what it has written. */
  readonly signal?: AbortSignal | undefined;
  /** Examines the restored database while it runs; what it throws ends the restore. */
  readonly examine: (addresses: { readonly url: string; readonly ownerUrl: string }) => Promise<void>;
};

/** The path of a socket has at most 107 bytes, of which the names below this folder take some fifty. */
const ABOVE_MAX = 55;
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
  const names = (await readdir(folder)).map((name) => name.replace(TAIL, ''));
  return findGap(names, segmentAt(manifest.stopLsn), (segment) => goesThrough(way, segment));
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
  const programs = await findPrograms(draft);
  await writeFirstFiles(draft.cluster, programs);
  // With this file PostgreSQL begins a new timeline: what the old one archived later stays apart.
  await writeFile(join(draft.cluster, 'recovery.signal'), '', { mode: 0o600 });
  // Only the service may archive it: a copy that is merely tried out would add a timeline, and restores
  // follow the newest one.
  await saveSettings(draft.settings, { ...newSettings(), keepsLog: recovery.keepsLog });
  const above = tmpdir().length > ABOVE_MAX ? '/tmp' : tmpdir();
  return withTemporary(above, options.log, async (folder) => {
    const entrance = await makeEntrance(folder, programs);
    const isShort = !(await startCopy(draft, backup, recovery, { ...options, programs, entrance }));
    const lastTransactionAt = await enter(draft, backup, entrance, options);
    await stopServer(draft, options.log);
    const forks = await readForks(draft, backup.manifest.timeline, recovery.to);
    return { lastTransactionAt, isShort, forks };
  });
}

/** Sets new passwords, and examines the copy. @returns when the last transaction in it was committed */
async function enter(draft: Folder, backup: Backup, entrance: Entrance, options: Restoring): Promise<Date> {
  const settings = (await readSettings(draft)) as Settings;
  const server = await findServer(draft);
  if (!server) throw new EmbeddedError(`the restored database does not run (more in ${draft.log})`);
  const address = (user: string, password: string) =>
    addressOf(user, password, server.port, options.database);
  const owner = ownerOf(options);
  const client = await connect(entrance.address(owner, server.port));
  const lastTransactionAt = await readLastTransaction(client, backup)
    .then(async (at) => {
      await setPasswords(client, {
        [owner]: settings.ownerPassword,
        [options.user]: settings.servicePassword,
      });
      return at;
    })
    .finally(() => client.end());
  const examining = options.examine({
    url: address(options.user, settings.servicePassword),
    ownerUrl: address(owner, settings.ownerPassword),
  });
  await Promise.race([examining, aborted(options.signal)]);
  return lastTransactionAt;
}

/** Rejects with the reason of a signal once it is given. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

async function readLastTransaction(client: pg.Client, { manifest }: Backup): Promise<Date> {
  const { rows } = await client.query<{ at: Date | null }>('select pg_last_xact_replay_timestamp() as at');
  return rows[0]?.at ?? new Date(manifest.endedAt);
}

/**
 * A backup holds no passwords, so a restored database gets new ones. Until then its owner enters by a socket
 * in a folder that no other account can enter.
 */
type Entrance = {
  readonly settings: Readonly<Record<string, string>>;
  address(user: string, port: number): string;
};

async function makeEntrance(temporary: string, programs: Programs): Promise<Entrance> {
  const folder = join(temporary, 'socket');
  await mkdir(folder, { mode: 0o700 });
  const access = join(folder, 'pg_hba.conf');
  await writeFile(access, `local all all trust\n${FIRST_FILES['pg_hba.conf']}`, { mode: 0o600 });
  // An account of the database's own passes through the folder above, and can list nothing.
  await chmod(temporary, 0o711);
  await programs.give(folder);
  return {
    settings: { hba_file: access, unix_socket_directories: folder },
    address: (user, port) => socketAddressOf(user, folder, port, 'postgres'),
  };
}

type Starting = Restoring & { readonly programs: Programs; readonly entrance: Entrance };

/** Starts the copy and brings it to the wanted time. @returns false if the archived log ends before it */
async function startCopy(
  draft: Folder,
  backup: Backup,
  recovery: Recovery,
  options: Starting,
): Promise<boolean> {
  const { archived, to, keepsLog } = recovery;
  const { programs, entrance } = options;
  await programs.give(draft.cluster);
  if (archived) await programs.give(archived.folder);
  const settings = {
    ...entrance.settings,
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
