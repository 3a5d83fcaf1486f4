import { statfs } from 'node:fs/promises';
import { findForeignTimeline, isLogWaiting } from '../db/embedded.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { isLoopback } from '../network.ts';
import {
  ARCHIVER,
  BATCHES_BEHIND,
  ENDPOINTS,
  NOTED_BACKUP,
  one,
  PARTITIONS_AHEAD,
  WEBHOOKS_BEHIND,
} from './state.ts';
import { listUndurable, readLastBackup } from './status.ts';

/** Checks what a start and a night of unattended operation require: it reports problems with advice. */

/** `ok`; `warning`: somebody should look at it; `failure`: it needs action. */
export const STATES = ['ok', 'warning', 'failure'] as const;
type State = (typeof STATES)[number];

export type Finding = {
  readonly check: string;
  readonly state: State;
  readonly found: string;
  /** The advice; null if nothing is to be done. */
  readonly advice: string | null;
};

export type Deployment = {
  readonly version: string;
  /** Undefined if the database is not the embedded one. */
  readonly dataDir: string | undefined;
  readonly archiveDir: string | undefined;
  /** The source of the key ring, in words. */
  readonly keyRing: { readonly source: string; readonly isFile: boolean; readonly isExposed: boolean };
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

type Found = Omit<Finding, 'check'>;

type Check = (db: Queries, deployment: Deployment) => Promise<Found | undefined>;

/** A check that needs no database: it also runs when the database cannot be reached. */
type LocalCheck = (deployment: Deployment) => Promise<Found | undefined> | Found;

const ok = (found: string): Found => ({ state: 'ok', found, advice: null });
const warning = (found: string, advice: string): Found => ({ state: 'warning', found, advice });
const failure = (found: string, advice: string): Found => ({ state: 'failure', found, advice });

const inHours = (seconds: number) => `${Math.floor(seconds / HOUR)} h ago`;
const inGb = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(1)} GB`;

const LOCAL_CHECKS: Readonly<Record<string, LocalCheck>> = {
  node: () => {
    const found = `Node ${process.versions.node}`;
    if (Number(process.versions.node.split('.')[0]) === NODE_MAJOR) return ok(found);
    return warning(
      found,
      `Scrip is tested on Node ${NODE_MAJOR}, which npm ci installs: start it by its own command`,
    );
  },
  disk: async ({ dataDir }) => {
    if (dataDir === undefined) return undefined;
    const { bavail, blocks, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    const found = `${inGb(free)} of ${inGb(blocks * bsize)} free at ${dataDir}`;
    if (free < DISK_FREE_FAILURE_BYTES)
      return failure(found, 'free space now: a full disk stops every booking');
    if (bavail < blocks * DISK_FREE_MIN_SHARE) return warning(found, 'free space, or move the data folder');
    return ok(found);
  },
  'key ring': ({ keyRing }) => {
    if (keyRing.isExposed)
      return failure(
        `${keyRing.source} can be read by other accounts`,
        'chmod 600, then scrip keyring rotate',
      );
    if (keyRing.isFile)
      return ok(
        `${keyRing.source}: keep a copy of it apart from the backups (nobody can check that for you)`,
      );
    return ok(keyRing.source);
  },
  network: ({ network: { host, publicUrl, trustedProxies } }) => {
    const isOpen = !isLoopback(host);
    const found = `listens at ${host}, known as ${publicUrl ?? 'nothing else'}`;
    if (isOpen && publicUrl === undefined)
      return warning(found, 'set SCRIP_PUBLIC_URL: links and sign-ins accept only the host name that it has');
    if (publicUrl?.startsWith('https:') && trustedProxies.length === 0)
      return warning(
        `${found}, and trusts no proxy`,
        'set SCRIP_TRUSTED_PROXIES to the addresses of the proxy: all callers share the limits of its address',
      );
    return ok(found);
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
    const found = `Scrip ${version}, PostgreSQL ${server.name}`;
    if (server.version < POSTGRES_MIN || server.version >= POSTGRES_MAX)
      return failure(found, 'use PostgreSQL 15 to 18');
    return ok(found);
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
    if (behind > 0)
      return failure(
        `the database's clock is ${behind.toFixed(0)} s behind the books: every booking is refused`,
        'set the clock (docs/how-to/disaster.md, "The clock was wrong")',
      );
    // The database read its clock between these two times.
    const offSeconds = Math.max(0, askedAt / 1_000 - clock, clock - answeredAt / 1_000);
    const found = `the database's clock is ${offSeconds.toFixed(1)} s off this machine's`;
    if (offSeconds > CLOCK_OFF_FAILURE_SECONDS)
      return failure(
        found,
        'set both clocks by NTP: expiries, locks and signatures of webhooks depend on them',
      );
    if (offSeconds > CLOCK_OFF_MAX_SECONDS) return warning(found, 'set both clocks by NTP');
    return ok(found);
  },
  durability: async (db) => {
    const off = await listUndurable(db);
    if (off.length === 0) return ok('commits are on the disk before they are acknowledged');
    return failure(
      `${off.join(' and ')} = off`,
      `set ${off.join(' and ')} to on: a crash loses payments that were acknowledged`,
    );
  },
  checksums: async (db) => {
    const { checksums } = await one<{ checksums: string }>(
      db,
      sql`select current_setting('data_checksums') as checksums`,
    );
    if (checksums === 'on') return ok('the database notices damaged pages');
    return warning(
      'the database has no checksums of its pages',
      'stop the server and run pg_checksums --enable',
    );
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
    const found = `${inGb(dataBytes)} of data, ${inGb(bufferBytes)} of buffers`;
    // A checkpoint then lets at most this little data be logged whole.
    if (dataBytes <= bufferBytes) return ok(found);
    const advice = adviseSettings(bufferBytes, log);
    if (advice.length === 0) return ok(found);
    return warning(found, `set ${advice.join(', ')} (docs/explanation/scale.md)`);
  },
  connections: async (db, { connectionsMax }) => {
    const { most, connections } = await one<{ most: number; connections: number }>(
      db,
      sql`
select current_setting('max_connections')::int as most, count(*)::int as connections
from pg_stat_activity where backend_type = 'client backend'`,
    );
    const found = `${connections} of ${most} in use, up to ${connectionsMax} for each process`;
    const room = Math.floor(most / connectionsMax);
    if (most - connections < connectionsMax)
      return warning(found, `raise max_connections, or run fewer processes: there is room for ${room}`);
    return ok(found);
  },
  backup: async (db, { dataDir }) => {
    if (dataDir === undefined) return examineNotedBackup(db);
    const last = await readLastBackup(dataDir);
    if (!last) return warning('no backup was made', 'scrip backup DIR, every night (docs/how-to/back-up.md)');
    const age = (Date.now() - Date.parse(last.endedAt)) / 1_000;
    return examineAge(age, last.path, 'scrip backup DIR, every night');
  },
  archive: async (db, { dataDir, archiveDir }) => {
    if (dataDir === undefined) return examineServersArchive(db);
    const { archives, failing } = await one<{ archives: boolean; failing: boolean }>(db, ARCHIVER);
    if (await isLogWaiting(dataDir))
      return failure(
        'the log cannot be sent to its bucket, and fills the data folder',
        'the log of `scrip serve` says why: the network, the keys of AWS, or the bucket',
      );
    if (failing && archives)
      return failure(
        'the log cannot be archived',
        'look into postgres.log: free space in the archive, or mount it',
      );
    if (archives) return examineTimelines(db, dataDir);
    if (archiveDir !== undefined)
      return warning('SCRIP_ARCHIVE_DIR is set, but the log is not archived', 'start `scrip serve` with it');
    return warning(
      'the log is not archived: a restore goes back to the last backup',
      'set SCRIP_ARCHIVE_DIR to a folder on another disk',
    );
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
    const found = `${standbys} connected, up to ${seconds.toFixed(0)} s behind`;
    return seconds > LATE_MAX_SECONDS
      ? failure(found, 'pg_stat_replication shows which: a failover would lose what it has not replayed')
      : ok(found);
  },
  'last close': async (db) => {
    const { seconds } = await one<{ seconds: number | null }>(
      db,
      sql`
select extract(epoch from now() - max(ends_at))::float8 as seconds from book_closings`,
    );
    if (seconds === null) return ok('no day was closed yet');
    const found = `the last closed day ended ${inHours(seconds)}`;
    return seconds > CLOSE_MAX_HOURS * HOUR
      ? failure(found, 'scrip books close: it says why it cannot')
      : ok(found);
  },
  partitions: async (db) => {
    const { months } = await one<{ months: number }>(db, PARTITIONS_AHEAD);
    const found = `created for ${months} months ahead`;
    return months < PARTITIONS_AHEAD_MIN
      ? warning(
          found,
          'end the oldest transactions of pg_stat_activity: the worker waits for a moment without readers',
        )
      : ok(found);
  },
  batches: async (db) => {
    const { processing, oldestSeconds } = await one<{ processing: number; oldestSeconds: number }>(
      db,
      BATCHES_BEHIND,
    );
    const found = processing === 0 ? 'none in production' : `${processing} in production`;
    if (processing > 0 && oldestSeconds > LATE_MAX_SECONDS)
      return failure(
        `${found}, one without progress for ${Math.floor(oldestSeconds / 60)} minutes`,
        'is `scrip work`, or `scrip serve` without --no-work, running? `scrip batch show` says what failed',
      );
    // The batches that a failure of their production canceled in the last day. Orders of merchants were lost.
    const { failed, transactionId } = await one<{ failed: number; transactionId: string | null }>(
      db,
      sql`
select count(*)::int as failed, max(transaction_id::text) as "transactionId"
from batches where status = 'CANCELED' and failure is not null and ended_at > now() - interval '1 day'`,
    );
    if (failed > 0)
      return failure(
        `${found}, ${failed} canceled by a failure in the last day`,
        `\`scrip batch show ${transactionId}\` says what failed: repair it, and tell the merchant to order again`,
      );
    return ok(found);
  },
  webhooks: async (db) => {
    const { due, oldestSeconds } = await one<{ due: number; oldestSeconds: number }>(db, WEBHOOKS_BEHIND);
    const { disabled, failing } = await one<{ disabled: number; failing: number }>(db, ENDPOINTS);
    const found = `${due} due, ${failing} failing and ${disabled} disabled endpoints`;
    if (oldestSeconds > LATE_MAX_SECONDS)
      return failure(found, 'is `scrip work`, or `scrip serve` without --no-work, running?');
    if (disabled + failing > 0)
      return warning(found, '`scrip webhook list` shows them: tell their merchants');
    return ok(found);
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
    bufferBytes <= DEFAULT_BUFFER_BYTES && "shared_buffers to a quarter of the server's memory",
    checkpointSeconds < CHECKPOINT_MIN_SECONDS && 'checkpoint_timeout to 30min',
    logBytes < LOG_MIN_BYTES && 'max_wal_size to 8GB',
    // PostgreSQL's own method, pglz, takes more time than a redemption for each page.
    lacksCompression && 'wal_compression to lz4',
  ].filter((advice) => advice !== false);
}

function examineAge(seconds: number, place: string, advice: string): Found {
  const found = `the last one ended ${inHours(seconds)}: ${place}`;
  return seconds > BACKUP_MAX_HOURS * HOUR ? failure(found, advice) : ok(found);
}

/** The backups of an operator's own server are made by its own tools, which report them. */
async function examineNotedBackup(db: Queries): Promise<Found> {
  const [noted] = await db.query<{ place: string; seconds: number }>(NOTED_BACKUP);
  if (noted)
    return examineAge(noted.seconds, noted.place, 'look at the tool that makes and reports the backups');
  return warning(
    'no backup of this server was reported',
    "back it up by its own or your provider's tools, then `scrip backup note` (docs/how-to/back-up.md)",
  );
}

async function examineServersArchive(db: Queries): Promise<Found> {
  const { archives, failing } = await one<{ archives: boolean; failing: boolean }>(db, ARCHIVER);
  if (archives && failing)
    return failure('the server cannot archive its log', 'pg_stat_archiver and the log of the server say why');
  if (archives) return ok('the server archives its log');
  return warning(
    'the server does not archive its log: a restore goes back to the last backup',
    "set archive_mode, or your provider's restore to a point in time (docs/how-to/back-up.md)",
  );
}

/** A restore follows the newest timeline in the archive, which must be that of this database. */
async function examineTimelines(db: Queries, dataDir: string): Promise<Found> {
  const { timeline } = await one<{ timeline: number }>(
    db,
    sql`
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer as timeline`,
  );
  const foreign = await findForeignTimeline(dataDir, timeline);
  if (foreign === undefined) return ok('the log is archived');
  return failure(
    `a restored copy of this database archives to the same place (timeline ${foreign}); a restore would follow it`,
    'stop the copy, set SCRIP_ARCHIVE_DIR to an empty place, and make a backup',
  );
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
      failure(`the check failed: ${error.message}`, 'mend that first, then run scrip doctor again'),
    );
    if (found) findings.push({ check, ...found });
  }
  return findings;
}
