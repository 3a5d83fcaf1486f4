import { isLogWaiting, SENDER_LOCK } from '../db/embedded.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';

/**
 * The statements of the gauges that other checks read too. They stand apart, so that a service without
 * metrics does not load the library of the gauges.
 */

export const BATCHES_BEHIND: Sql = sql`
select count(*)::int as processing,
  coalesce(extract(epoch from now() - min(progressed_at)), 0)::float8 as "oldestSeconds"
from batches where status = 'PROCESSING'`;

/** Rows in partitions of the future do not count. Deliveries are found by the index of those that are due. */
export const WEBHOOKS_BEHIND: Sql = sql`
select count(*)::int as due, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as "oldestSeconds"
from webhook_deliveries where state = 'PENDING' and due_at <= now()`;

export const ENDPOINTS: Sql = sql`
select count(*) filter (where disabled_at is null and failing_since is null)::int as working,
  count(*) filter (where disabled_at is null and failing_since is not null)::int as failing,
  count(*) filter (where disabled_at is not null)::int as disabled
from webhook_endpoints where removed_at is null`;

const ARCHIVER: Sql = sql`
select current_setting('archive_command') not in ('', 'true', '(disabled)')
    or current_setting('archive_mode') <> 'off' and current_setting('archive_library') <> '' as archives,
  coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) as failing,
  exists (select from pg_locks where locktype = 'advisory' and objid = ${SENDER_LOCK} and objsubid = 1) as sends
from pg_stat_archiver`;

type Archiver = Record<'archives' | 'failing', boolean>;

/**
 * How the log is archived. `waits`: segments wait although a process sends them. While none does, as after a
 * stop, which ends the segment at hand, they wait for the next start.
 * @param dataDir undefined if the database is not the embedded one
 */
export async function readArchiver(db: Queries, dataDir?: string): Promise<Archiver & { waits: boolean }> {
  const { sends, ...archiver } = await one<Archiver & { sends: boolean }>(db, ARCHIVER);
  return { ...archiver, waits: dataDir !== undefined && sends && (await isLogWaiting(dataDir)) };
}

/**
 * The last backup of the operator's own server that its tool reported; no row without one.
 */
export const NOTED_BACKUP: Sql = sql`
select after::json ->> 'place' as place, extract(epoch from now() - occurred_at)::float8 as seconds
from audit where action = 'backup.note' order by sequence desc limit 1`;

/** For how many of the three months ahead every partitioned table has its partition. */
export const PARTITIONS_AHEAD: Sql = sql`
select 3 - count(distinct month)::int as months from missing_partitions(now(), now()) where month > now()`;

export const one = async <Row>(db: Queries, statement: Sql): Promise<Row> =>
  (await db.query<Row>(statement))[0] as Row;
