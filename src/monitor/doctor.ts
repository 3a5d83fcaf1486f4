import { statfs } from 'node:fs/promises';
import type { Service } from '../context.ts';
import { findForeignTimeline, isLogWaiting } from '../db/embedded.ts';
import { type Sql, sql } from '../db/sql.ts';
import { readLastBackup } from '../db/status.ts';
import { isLoopback } from '../network.ts';
import { ARCHIVER, BATCHES_BEHIND, ENDPOINTS, PARTITIONS_AHEAD, SERVER, WEBHOOKS_BEHIND } from './gauges.ts';

/** Checks what a start and a night of unattended operation require: it reports problems with advice. */

/** `ok`; `warning`: somebody should look at it; `failure`: it needs action. */
type State = 'ok' | 'warning' | 'failure';

export type Finding = {
  readonly check: string;
  readonly state: State;
  readonly found: string;
  /** The advice; null if nothing is to be done. */
  readonly advice: string | null;
};

export type Surroundings = {
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

type Found = Omit<Finding, 'check'> | undefined;

type Check = (service: Service, surroundings: Surroundings) => Promise<Found>;

/** A check that needs no database: it also runs when the database cannot be reached. */
type LocalCheck = (surroundings: Surroundings) => Promise<Found> | Found;

const ok = (found: string): Omit<Finding, 'check'> => ({ state: 'ok', found, advice: null });
const warning = (found: string, advice: string): Omit<Finding, 'check'> => ({
  state: 'warning',
  found,
  advice,
});
const failure = (found: string, advice: string): Omit<Finding, 'check'> => ({
  state: 'failure',
  found,
  advice,
});

async function one<Row>({ db }: Service, statement: Sql): Promise<Row> {
  return (await db.query<Row>(statement))[0] as Row;
}

type ServerRow = {
  version: string;
  version_number: number;
  fsync: string;
  synchronous_commit: string;
  full_page_writes: string;
  data_checksums: string;
  max_connections: number;
  connections: number;
  clock: number;
  /** By how many seconds the database's clock is behind the horizon of the books. */
  behind: number;
};

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
  versions: async (service, { version }) => {
    const server = await one<ServerRow>(service, SERVER);
    const found = `Scrip ${version}, PostgreSQL ${server.version}`;
    if (server.version_number < POSTGRES_MIN || server.version_number >= POSTGRES_MAX)
      return failure(found, 'use PostgreSQL 15 to 18');
    return ok(found);
  },
  clocks: async (service) => {
    const askedAt = Date.now();
    const { clock, behind } = await one<ServerRow>(service, SERVER);
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
  durability: async (service) => {
    const server = await one<ServerRow>(service, SERVER);
    const settings = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;
    const found = settings.map((name) => `${name} = ${server[name]}`).join(', ');
    const isOff = settings.filter((name) => server[name] === 'off');
    return isOff.length > 0
      ? failure(found, `set ${isOff.join(' and ')} to on: a crash loses payments that were acknowledged`)
      : ok(found);
  },
  checksums: async (service) => {
    const { data_checksums } = await one<ServerRow>(service, SERVER);
    if (data_checksums === 'on') return ok('the database notices damaged pages');
    return warning(
      'the database has no checksums of its pages',
      'stop the server and run pg_checksums --enable',
    );
  },
  connections: async (service, { connectionsMax }) => {
    const { max_connections, connections } = await one<ServerRow>(service, SERVER);
    const found = `${connections} of ${max_connections} in use, up to ${connectionsMax} for each process`;
    const room = Math.floor(max_connections / connectionsMax);
    if (max_connections - connections < connectionsMax)
      return warning(found, `raise max_connections, or run fewer processes: there is room for ${room}`);
    return ok(found);
  },
  backup: async (service, { dataDir }) => {
    if (dataDir === undefined) return examineServersArchive(service);
    const last = await readLastBackup(dataDir);
    if (!last) return warning('no backup was made', 'scrip backup DIR, every night (docs/how-to/back-up.md)');
    const age = (Date.now() - Date.parse(last.endedAt)) / 1_000;
    const found = `the last one ended ${inHours(age)}: ${last.path}`;
    return age > BACKUP_MAX_HOURS * HOUR ? failure(found, 'scrip backup DIR, every night') : ok(found);
  },
  archive: async (service, { dataDir, archiveDir }) => {
    if (dataDir === undefined) return undefined;
    const { archives, failing } = await one<{ archives: boolean; failing: boolean }>(service, ARCHIVER);
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
    if (archives) return examineTimelines(service, dataDir);
    if (archiveDir !== undefined)
      return warning('SCRIP_ARCHIVE_DIR is set, but the log is not archived', 'start `scrip serve` with it');
    return warning(
      'the log is not archived: a restore goes back to the last backup',
      'set SCRIP_ARCHIVE_DIR to a folder on another disk',
    );
  },
  standbys: async (service) => {
    // An account without the role pg_monitor does not see how far a standby is behind.
    const { standbys, seconds } = await one<{ standbys: number; seconds: number }>(
      service,
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
  'last close': async (service) => {
    const { seconds } = await one<{ seconds: number | null }>(
      service,
      sql`
select extract(epoch from now() - max(ends_at))::float8 as seconds from book_closings`,
    );
    if (seconds === null) return ok('no day was closed yet');
    const found = `the last closed day ended ${inHours(seconds)}`;
    return seconds > CLOSE_MAX_HOURS * HOUR
      ? failure(found, 'scrip books close: it says why it cannot')
      : ok(found);
  },
  partitions: async (service) => {
    const { months } = await one<{ months: number }>(service, PARTITIONS_AHEAD);
    const found = `created for ${months} months ahead`;
    return months < PARTITIONS_AHEAD_MIN
      ? warning(
          found,
          'end the oldest transactions of pg_stat_activity: the worker waits for a moment without readers',
        )
      : ok(found);
  },
  batches: async (service) => {
    const { processing, oldest_seconds } = await one<{ processing: number; oldest_seconds: number }>(
      service,
      BATCHES_BEHIND,
    );
    const found = processing === 0 ? 'none in production' : `${processing} in production`;
    if (processing > 0 && oldest_seconds > LATE_MAX_SECONDS)
      return failure(
        `${found}, one without progress for ${Math.floor(oldest_seconds / 60)} minutes`,
        'is `scrip work`, or `scrip serve` without --no-work, running? `scrip batch show` says what failed',
      );
    // The batches that a failure of their production canceled in the last day. Orders of merchants were lost.
    const { failed, transaction_id } = await one<{ failed: number; transaction_id: string | null }>(
      service,
      sql`
select count(*)::int as failed, max(transaction_id::text) as transaction_id
from batches where status = 'CANCELED' and failure is not null and ended_at > now() - interval '1 day'`,
    );
    if (failed > 0)
      return failure(
        `${found}, ${failed} canceled by a failure in the last day`,
        `\`scrip batch show ${transaction_id}\` says what failed: repair it, and tell the merchant to order again`,
      );
    return ok(found);
  },
  webhooks: async (service) => {
    const { due, oldest_seconds } = await one<{ due: number; oldest_seconds: number }>(
      service,
      WEBHOOKS_BEHIND,
    );
    const { disabled, failing } = await one<{ disabled: number; failing: number }>(service, ENDPOINTS);
    const found = `${due} due, ${failing} failing and ${disabled} disabled endpoints`;
    if (oldest_seconds > LATE_MAX_SECONDS)
      return failure(found, 'is `scrip work`, or `scrip serve` without --no-work, running?');
    if (disabled + failing > 0)
      return warning(found, '`scrip webhook list` shows them: tell their merchants');
    return ok(found);
  },
};

/** The backups of an operator's own server are made by its own tools. Scrip sees only whether it archives. */
async function examineServersArchive(service: Service): Promise<Omit<Finding, 'check'>> {
  const { archives, failing } = await one<{ archives: boolean; failing: boolean }>(service, ARCHIVER);
  if (archives && failing)
    return failure('the server cannot archive its log', 'pg_stat_archiver and the log of the server say why');
  if (archives)
    return ok('the server archives its log; Scrip knows nothing of its backups: watch them yourself');
  return warning(
    'Scrip knows of no backup: this server does not archive its log',
    "back it up by its own or your provider's tools (docs/how-to/back-up.md)",
  );
}

/** A restore follows the newest timeline in the archive, which must be that of this database. */
async function examineTimelines(service: Service, dataDir: string): Promise<Omit<Finding, 'check'>> {
  const { timeline } = await one<{ timeline: number }>(
    service,
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
 * @param service undefined if the database cannot be reached: only the checks that need none are run
 * @returns the finding of each check, in a fixed order; checks that do not apply are left out
 */
export async function examine(surroundings: Surroundings, service?: Service): Promise<Finding[]> {
  const findings: Finding[] = [];
  const add = async (check: string, run: () => Promise<Found> | Found) => {
    const found = await Promise.resolve()
      .then(run)
      .catch((error: Error) =>
        failure(`the check failed: ${error.message}`, 'see to that first, then run scrip doctor again'),
      );
    if (found) findings.push({ check, ...found });
  };
  for (const [check, run] of Object.entries(LOCAL_CHECKS)) await add(check, () => run(surroundings));
  if (service)
    for (const [check, run] of Object.entries(CHECKS)) await add(check, () => run(service, surroundings));
  return findings;
}
