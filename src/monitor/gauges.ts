import { statfs } from 'node:fs/promises';
import { Gauge, Registry } from 'prom-client';
import { isAway, isUnavailable, sqlState } from '../db/errors.ts';
import type { Database } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import type { Logger } from '../log.ts';
import { CAUSE_NAMES, type Readiness } from './readiness.ts';
import {
  BATCHES_BEHIND,
  ENDPOINTS,
  NOTED_BACKUP,
  one,
  PARTITIONS_AHEAD,
  readArchiver,
  WEBHOOKS_BEHIND,
} from './state.ts';
import { readLastBackup } from './status.ts';

/**
 * The state of a service at a glance. Each query returns one row and is cheap: it uses indexes or small
 * tables.
 */

/** Jobs that are due, and on which no process works. */
const JOBS_BEHIND: Sql = sql`
select count(*)::int as due,
  coalesce(extract(epoch from now() - min(greatest(due_at, leased_until))), 0)::float8 as "oldestSeconds"
from jobs
where state in ('WAITING', 'RUNNING') and due_at <= now() and (leased_until is null or leased_until < now())`;

const GUESSES_TODAY: Sql = sql`
select coalesce(sum(guesses), 0)::int as guesses,
  count(*) filter (where blocked_at is not null)::int as blocked
from api_key_days where day = (now() at time zone 'UTC')::date`;

/** The state of a statement that the server ended, such as at its time limit. */
const CANCELED = '57014';

/** Gauges of the database's state. Every process reports the same values: aggregate them by maximum. */

type Watched = {
  readonly db: Database;
  readonly clock: () => Date;
  readonly keys: KeyRing;
  readonly log: Logger;
  readonly readiness: Readiness;
};

type Watching = { readonly service: Watched; readonly dataDir: string | undefined };

/** Reads a gauge: one value, or one for each label; null if there is none. */
type Read = (watching: Watching) => Promise<Readonly<Record<string, number | null>>>;

type Definition = { readonly help: string; readonly label?: string; readonly read: Read };

/** Reads a gauge without a label from a column of the only row of a statement. */
const single =
  (column: string, statement: Sql): Read =>
  async ({ service }) => ({
    '': (await one<Record<string, number | null>>(service.db, statement))[column] ?? null,
  });

/** The gauge that is always there. */
export const DATABASE_UP = { name: 'scrip_database_up', help: '1 while the database answers.' };

/** The gauges by name. The key of a value without a label is ''. */
export const GAUGES: Readonly<Record<string, Definition>> = {
  scrip_ready: {
    help:
      '1 while calls can be served; 0 for the cause why they cannot ' +
      `(${CAUSE_NAMES.map((cause) => `\`${cause}\``).join(', ')}), as \`/readyz\` says.`,
    label: 'cause',
    read: ({ service }) => service.readiness.gauge(service),
  },
  scrip_batches_processing: {
    help: 'Batches that are being produced.',
    read: single('processing', BATCHES_BEHIND),
  },
  scrip_batches_stalled_seconds: {
    help: 'How long ago the slowest of them progressed.',
    read: single('oldestSeconds', BATCHES_BEHIND),
  },
  scrip_jobs_due: {
    help: 'Jobs of the background work that are due and not started.',
    read: single('due', JOBS_BEHIND),
  },
  scrip_jobs_late_seconds: {
    help: 'The age of the oldest of them.',
    read: single('oldestSeconds', JOBS_BEHIND),
  },
  scrip_sweep_late_seconds: {
    help: 'How long ago the batch expired that has waited longest for its sweep.',
    read: single(
      'seconds',
      sql`
select coalesce(extract(epoch from now() - min(expires_at)), 0)::float8 as seconds
from batches where status = 'COMPLETED' and swept_at is null and expires_at < now()`,
    ),
  },
  scrip_webhooks_due: {
    help: 'Webhook deliveries that are due and not sent yet.',
    read: single('due', WEBHOOKS_BEHIND),
  },
  scrip_webhooks_late_seconds: {
    help: 'The age of the oldest of them.',
    read: single('oldestSeconds', WEBHOOKS_BEHIND),
  },
  scrip_webhook_endpoints: {
    help: 'Webhook endpoints by state: `working`, `failing`, `disabled`.',
    label: 'state',
    read: async ({ service }) => ({ ...(await one<Record<string, number>>(service.db, ENDPOINTS)) }),
  },
  scrip_floats_low: {
    help: 'Floats below their threshold, by currency.',
    label: 'currency',
    read: async ({ service }) => {
      const rows = await service.db.query<{ currency: string; low: number }>(sql`
select currency, count(*)::int as floats,
  count(*) filter (where balance_minor < coalesce(low_minor, topped_up_minor / 10))::int as low
from floats group by currency`);
      return Object.fromEntries(rows.map(({ currency, low }) => [currency, low]));
    },
  },
  scrip_network_near: {
    help:
      '1 once the payments of twelve months have reached 80 % of the amount at which a limited network must ' +
      'be notified, by currency; absent without one.',
    label: 'currency',
    read: async ({ service }) => {
      const rows = await service.db.query<{ currency: string; state: string }>(
        sql`select currency, state from network_payments(database_time())`,
      );
      return Object.fromEntries(rows.map(({ currency, state }) => [currency, Number(state !== 'below')]));
    },
  },
  scrip_guesses_today: {
    help: 'Unknown codes and wrong PINs since midnight UTC.',
    read: single('guesses', GUESSES_TODAY),
  },
  scrip_keys_blocked: {
    help: 'API keys that are blocked today because they kept guessing.',
    read: single('blocked', GUESSES_TODAY),
  },
  scrip_database_bytes: {
    help: 'The size of the database.',
    read: single('bytes', sql`select pg_database_size(current_database())::float8 as bytes`),
  },
  scrip_disk_free_bytes: {
    help: 'What is free on the disk of the embedded database.',
    read: async ({ dataDir }) => {
      const disk = dataDir === undefined ? undefined : await statfs(dataDir);
      return { '': disk ? disk.bavail * disk.bsize : null };
    },
  },
  scrip_archive_failing: {
    help: '1 while the log of the database cannot be archived; absent if it is not archived.',
    read: async ({ service, dataDir }) => {
      const { archives, failing, waits } = await readArchiver(service.db, dataDir);
      return { '': archives ? Number(failing || waits) : null };
    },
  },
  scrip_partitions_ahead_months: {
    help: 'For how many months to come all tables have their partition; 3 unless long readers delay them.',
    read: single('months', PARTITIONS_AHEAD),
  },
  scrip_last_close_seconds: {
    help: 'How long ago the last closed day of the books ended, or their first day began.',
    read: single(
      'seconds',
      sql`
select extract(epoch from now() - coalesce(
  (select max(ends_at) from book_closings),
  (select min(starts_at) from book_days)))::float8 as seconds`,
    ),
  },
  scrip_last_backup_seconds: {
    help:
      'How long ago the last backup of the embedded database ended, or the database was made; of another ' +
      'server, the last backup that was reported, absent without one.',
    read: async (watching) => {
      if (watching.dataDir === undefined) {
        const [noted] = await watching.service.db.query<{ seconds: number }>(NOTED_BACKUP);
        return { '': noted?.seconds ?? null };
      }
      const backup = await readLastBackup(watching.dataDir);
      if (backup) return { '': (Date.now() - Date.parse(backup.endedAt)) / 1_000 };
      // A missing backup counts as old, so that the alert fires.
      return single(
        'seconds',
        sql`
select extract(epoch from now() - min(applied_at))::float8 as seconds from migrations`,
      )(watching);
    },
  },
};

/**
 * Returns a function that reads all gauges of a service. While the database is away, `scrip_database_up` is 0
 * and the others are absent.
 * @param dataDir of the embedded database; undefined if the database is external
 */
export function createGauges(service: Watched, dataDir: string | undefined): () => Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  const up = new Gauge({ ...DATABASE_UP, registers });
  const gauges = Object.entries(GAUGES).map(([name, { help, label, read }]) => {
    const gauge = new Gauge({ name, help, labelNames: label === undefined ? [] : [label], registers });
    return async () => {
      gauge.reset();
      // A reset would set a value without a label to 0, but a gauge that cannot be read must be absent.
      if (label === undefined) gauge.remove();
      for (const [at, value] of Object.entries(await read({ service, dataDir }))) {
        if (value !== null) gauge.set(label === undefined ? {} : { [label]: at }, value);
      }
    };
  });
  return async () => {
    const read = await Promise.allSettled(gauges.map((each) => each()));
    const failures = read.filter((each) => each.status === 'rejected').map(({ reason }) => reason as Error);
    // The readiness logs an outage, once. Any other error is a fault in a statement, as is one that takes too
    // long, which would otherwise go unnoticed.
    for (const error of failures)
      if (!isUnavailable(error) || sqlState(error) === CANCELED)
        service.log.error({ err: error }, 'a metric cannot be read');
    up.set(failures.some(isAway) ? 0 : 1);
    return registry.metrics();
  };
}
