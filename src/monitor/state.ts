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

export const ARCHIVER: Sql = sql`
select current_setting('archive_command') not in ('', 'true', '(disabled)')
    or current_setting('archive_mode') <> 'off' and current_setting('archive_library') <> '' as archives,
  coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) as failing,
  extract(epoch from now() - last_archived_time)::float8 as last_seconds
from pg_stat_archiver`;

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
