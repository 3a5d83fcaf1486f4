import { statfs } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { findForeignTimeline } from '../db/embedded.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { isLoopback } from '../network.ts';
import { type Found, failure, ok, warning } from './findings.ts';
import {
  BATCHES_BEHIND,
  ENDPOINTS,
  NOTED_BACKUP,
  one,
  PARTITIONS_AHEAD,
  readArchiver,
  WEBHOOKS_BEHIND,
} from './state.ts';
import { listUndurable, readLastBackup } from './status.ts';

/** Checks what a start and a night of unattended operation require: it reports problems with advice. */

export type Finding = Found & { readonly check: string };

export type Deployment = {
  readonly version: string;
  /** Undefined if the database is not the embedded one. */
  readonly dataDir: string | undefined;
  readonly archiveDir: string | undefined;
  /** The file of the key ring; undefined: it is in a setting. Whether the operator has made it. */
  readonly keyRing: {
    readonly file: string | undefined;
    readonly isOwn: boolean;
    readonly isExposed: boolean;
  };
  /** The most connections of one process. */
  readonly connectionsMax: number;
  readonly network: {
    readonly host: string;
    readonly publicUrl: string | undefined;
    readonly trustedProxies: readonly string[];
  };
};

const NODE_MAJOR = 24;
const POSTGRES_MIN = 150_000;
const POSTGRES_MAX = 190_000;
const CLOCK_OFF_MAX_SECONDS = 1;
const CLOCK_OFF_FAILURE_SECONDS = 30;
const DISK_FREE_MIN_SHARE = 0.1;
const DISK_FREE_FAILURE_BYTES = 1024 ** 3;
const HOUR = 3_600;
const BACKUP_MAX_HOURS = 36;
const CLOSE_MAX_HOURS = 48;
const LATE_MAX_SECONDS = 600;
const PARTITIONS_AHEAD_MIN = 2;
/** The default of PostgreSQL, which suits no server with much data. */
const DEFAULT_BUFFER_BYTES = 128 * 1024 ** 2;
/** Shorter checkpoints log the same pages whole too often. */
const CHECKPOINT_MIN_SECONDS = 15 * 60;
const LOG_MIN_BYTES = 2 * 1024 ** 3;

type Check = (db: Queries, deployment: Deployment) => Promise<Found | undefined>;

/** A check that needs no database: it also runs when the database cannot be reached. */
type LocalCheck = (deployment: Deployment) => Promise<Found | undefined> | Found;

const inHours = (seconds: number) => Math.floor(seconds / HOUR);
const rounded = (value: number) => Math.round(value * 10) / 10;
const inGb = (bytes: number) => rounded(bytes / 1024 ** 3);

const LOCAL_CHECKS: Readonly<Record<string, LocalCheck>> = {
  node: () => {
    const version = process.versions.node;
    if (Number(version.split('.')[0]) === NODE_MAJOR) return ok('node', { version });
    return warning('node', 'use-node', { version, major: NODE_MAJOR });
  },
  disk: async ({ dataDir }) => {
    if (dataDir === undefined) return undefined;
    const { bavail, blocks, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    const values = { free: inGb(free), total: inGb(blocks * bsize), place: dataDir };
    if (free < DISK_FREE_FAILURE_BYTES) return failure('disk', 'free-now', values);
    if (bavail < blocks * DISK_FREE_MIN_SHARE) return warning('disk', 'free-space', values);
    return ok('disk', values);
  },
  'key ring': ({ keyRing: { file, isOwn, isExposed } }) => {
    if (file === undefined) return ok('key-setting');
    if (isExposed) return failure('key-file-open', 'close-key-file', { file });
    return ok(isOwn ? 'key-file-own' : 'key-file', { file });
  },
  network: ({ network: { host, publicUrl, trustedProxies } }) => {
    if (publicUrl === undefined) {
      if (isLoopback(host)) return ok('known-as-nothing', { host });
      return warning('known-as-nothing', 'set-public-url', { host });
    }
    const values = { host, address: publicUrl };
    if (publicUrl.startsWith('https:') && trustedProxies.length === 0)
      return warning('trusts-no-proxy', 'set-proxies', values);
    return ok('known-as', values);
  },
};

const CHECKS: Readonly<Record<string, Check>> = {
  versions: async (db, { version }) => {
    const server = await one<{ name: string; version: number }>(
      db,
      sql`
select current_setting('server_version') as name,
  current_setting('server_version_num')::int as version`,
    );
    const values = { scrip: version, postgres: server.name };
    if (server.version < POSTGRES_MIN || server.version >= POSTGRES_MAX)
      return failure('versions', 'use-postgres', values);
    return ok('versions', values);
  },
  clocks: async (db) => {
    const askedAt = Date.now();
    // `behind`: by how many seconds the database's clock is behind the horizon of the books.
    const { clock, behind } = await one<{ clock: number; behind: number }>(
      db,
      sql`
select extract(epoch from clock_timestamp())::float8 as clock,
  extract(epoch from greatest(at, 'epoch') - database_time())::float8 as behind
from book_horizon`,
    );
    const answeredAt = Date.now();
    if (behind > 0) return failure('clock-behind', 'set-clock', { seconds: Math.round(behind) });
    // The database read its clock between these two times.
    const offSeconds = Math.max(0, askedAt / 1_000 - clock, clock - answeredAt / 1_000);
    const values = { seconds: rounded(offSeconds) };
    if (offSeconds > CLOCK_OFF_FAILURE_SECONDS) return failure('clock-off', 'set-clocks-now', values);
    if (offSeconds > CLOCK_OFF_MAX_SECONDS) return warning('clock-off', 'set-clocks', values);
    return ok('clock-off', values);
  },
  durability: async (db) => {
    const off = await listUndurable(db);
    if (off.length === 0) return ok('durable');
    return failure('undurable', 'set-on', { settings: off.join(', ') });
  },
  checksums: async (db) => {
    const { checksums } = await one<{ checksums: string }>(
      db,
      sql`select current_setting('data_checksums') as checksums`,
    );
    return checksums === 'on' ? ok('checksums') : warning('no-checksums', 'enable-checksums');
  },
  settings: async (db, { dataDir }) => {
    if (dataDir !== undefined) return undefined;
    const { dataBytes, bufferBytes, ...log } = await one<
      LogSettings & Record<'dataBytes' | 'bufferBytes', number>
    >(
      db,
      sql`
select pg_database_size(current_database())::float8 as "dataBytes",
  pg_size_bytes(current_setting('shared_buffers'))::float8 as "bufferBytes",
  pg_size_bytes(current_setting('max_wal_size'))::float8 as "logBytes",
  extract(epoch from current_setting('checkpoint_timeout')::interval)::int as "checkpointSeconds",
  (select setting not in ('lz4', 'zstd') and 'lz4' = any (enumvals) from pg_settings
    where name = 'wal_compression') as "lacksCompression"`,
    );
    const values = { data: inGb(dataBytes), buffers: inGb(bufferBytes) };
    // A checkpoint then lets at most this little data be logged whole.
    if (dataBytes <= bufferBytes) return ok('data', values);
    const advised = adviseSettings(bufferBytes, log);
    if (advised.length === 0) return ok('data', values);
    return warning('data', 'set-settings', { ...values, advised: advised.join(', ') });
  },
  connections: async (db, { connectionsMax }) => {
    const { most, connections } = await one<{ most: number; connections: number }>(
      db,
      sql`
select current_setting('max_connections')::int as most, count(*)::int as connections
from pg_stat_activity where backend_type = 'client backend'`,
    );
    const values = { connections, most, each: connectionsMax };
    if (most - connections >= connectionsMax) return ok('connections', values);
    const room = Math.floor(most / connectionsMax);
    return warning('connections', 'raise-connections', { ...values, room });
  },
  backup: async (db, { dataDir }) => {
    if (dataDir === undefined) return examineNotedBackup(db);
    const last = await readLastBackup(dataDir);
    if (!last) return warning('no-backup', 'back-up');
    const age = (Date.now() - Date.parse(last.endedAt)) / 1_000;
    return examineAge(age, last.path, 'back-up');
  },
  archive: async (db, { dataDir, archiveDir }) => {
    if (dataDir === undefined) return examineServersArchive(db);
    const { archives, failing, waits } = await readArchiver(db, dataDir);
    if (waits) return failure('log-waits', 'see-serve');
    if (failing && archives) return failure('log-fails', 'see-postgres');
    const isInside =
      archiveDir !== undefined && (resolve(archiveDir) + sep).startsWith(resolve(dataDir) + sep);
    if (archives && isInside) return warning('archive-inside', 'set-archive');
    if (archives) return examineTimelines(db, dataDir);
    if (archiveDir !== undefined) return warning('archive-unused', 'use-archive');
    return warning('no-archive', 'set-archive');
  },
  standbys: async (db) => {
    // An account without the role pg_monitor does not see how far a standby is behind.
    const { standbys, seconds } = await one<{ standbys: number; seconds: number }>(
      db,
      sql`
select count(*)::int as standbys,
  coalesce(extract(epoch from max(replay_lag)), 0)::float8 as seconds
from pg_stat_replication where application_name not in ('pg_basebackup', 'pg_receivewal')`,
    );
    if (standbys === 0) return undefined;
    const values = { standbys, seconds: Math.round(seconds) };
    return seconds > LATE_MAX_SECONDS
      ? failure('standbys', 'see-replication', values)
      : ok('standbys', values);
  },
  'last close': async (db) => {
    const { seconds } = await one<{ seconds: number | null }>(
      db,
      sql`
select extract(epoch from now() - max(ends_at))::float8 as seconds from book_closings`,
    );
    if (seconds === null) return ok('no-close');
    const values = { hours: inHours(seconds) };
    return seconds > CLOSE_MAX_HOURS * HOUR
      ? failure('last-close', 'close-days', values)
      : ok('last-close', values);
  },
  partitions: async (db) => {
    const { months } = await one<{ months: number }>(db, PARTITIONS_AHEAD);
    return months < PARTITIONS_AHEAD_MIN
      ? warning('partitions', 'end-transactions', { months })
      : ok('partitions', { months });
  },
  batches: async (db) => {
    const { processing, oldestSeconds } = await one<{ processing: number; oldestSeconds: number }>(
      db,
      BATCHES_BEHIND,
    );
    if (processing > 0 && oldestSeconds > LATE_MAX_SECONDS) {
      const minutes = Math.floor(oldestSeconds / 60);
      return failure('batches-stuck', 'run-work-for-batches', { processing, minutes });
    }
    // The batches that a failure of their production canceled in the last day. Orders of merchants were lost.
    const { failed, transactionId } = await one<{ failed: number; transactionId: string | null }>(
      db,
      sql`
select count(*)::int as failed, max(transaction_id::text) as "transactionId"
from batches where status = 'CANCELED' and failure is not null and ended_at > now() - interval '1 day'`,
    );
    if (transactionId !== null)
      return failure('batches-failed', 'order-again', { processing, failed, transactionId });
    return processing === 0 ? ok('no-batches') : ok('batches', { processing });
  },
  webhooks: async (db) => {
    const { due, oldestSeconds } = await one<{ due: number; oldestSeconds: number }>(db, WEBHOOKS_BEHIND);
    const { disabled, failing } = await one<{ disabled: number; failing: number }>(db, ENDPOINTS);
    const values = { due, failing, disabled };
    if (oldestSeconds > LATE_MAX_SECONDS) return failure('webhooks', 'run-work', values);
    if (disabled + failing > 0) return warning('webhooks', 'tell-merchants', values);
    return ok('webhooks', values);
  },
};

export const CHECK_NAMES: readonly string[] = [...Object.keys(LOCAL_CHECKS), ...Object.keys(CHECKS)];

type LogSettings = {
  readonly logBytes: number;
  readonly checkpointSeconds: number;
  readonly lacksCompression: boolean;
};

/** The settings that a server with more data than buffers needs: after a checkpoint, it logs pages whole. */
function adviseSettings(bufferBytes: number, { logBytes, checkpointSeconds, lacksCompression }: LogSettings) {
  return [
    // A quarter of the server's memory.
    bufferBytes <= DEFAULT_BUFFER_BYTES && 'shared_buffers = RAM / 4',
    checkpointSeconds < CHECKPOINT_MIN_SECONDS && 'checkpoint_timeout = 30min',
    logBytes < LOG_MIN_BYTES && 'max_wal_size = 8GB',
    // PostgreSQL's own method, pglz, takes more time than a redemption for each page.
    lacksCompression && 'wal_compression = lz4',
  ].filter((advice) => advice !== false);
}

function examineAge(seconds: number, place: string, advice: 'back-up' | 'see-tool'): Found {
  const values = { hours: inHours(seconds), place };
  return seconds > BACKUP_MAX_HOURS * HOUR
    ? failure('last-backup', advice, values)
    : ok('last-backup', values);
}

/** The backups of an operator's own server are made by its own tools, which report them. */
async function examineNotedBackup(db: Queries): Promise<Found> {
  const [noted] = await db.query<{ place: string; seconds: number }>(NOTED_BACKUP);
  if (noted) return examineAge(noted.seconds, noted.place, 'see-tool');
  return warning('no-noted-backup', 'note-backup');
}

async function examineServersArchive(db: Queries): Promise<Found> {
  const { archives, failing } = await readArchiver(db);
  if (archives) return failing ? failure('server-log-fails', 'see-archiver') : ok('server-archives');
  return warning('no-server-archive', 'set-archive-mode');
}

/** A restore follows the newest timeline in the archive, which must be that of this database. */
async function examineTimelines(db: Queries, dataDir: string): Promise<Found> {
  const { timeline } = await one<{ timeline: number }>(
    db,
    sql`
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer as timeline`,
  );
  const foreign = await findForeignTimeline(dataDir, timeline);
  if (foreign === undefined) return ok('archived');
  return failure('other-timeline', 'stop-copy', { timeline: foreign });
}

/**
 * Runs all checks. A check that fails with an error is a finding as well.
 * @param db undefined if the database cannot be reached: only the checks that need none are run
 * @returns the finding of each check, in a fixed order; checks that do not apply are left out
 */
export async function examine(deployment: Deployment, db?: Queries): Promise<Finding[]> {
  const checks: (readonly [string, () => Promise<Found | undefined> | Found])[] = [
    ...Object.entries(LOCAL_CHECKS).map(([check, run]) => [check, () => run(deployment)] as const),
    ...(db ? Object.entries(CHECKS).map(([check, run]) => [check, () => run(db, deployment)] as const) : []),
  ];
  const findings: Finding[] = [];
  for (const [check, run] of checks) {
    const found = await Promise.try(run).catch((error: Error) =>
      failure('check-failed', 'mend-check', { error: error.message }),
    );
    if (found) findings.push({ check, ...found });
  }
  return findings;
}
