import { type Sql, sql } from '../db/sql.ts';

/**
 * The state of a service at a glance. Each query returns one row and is cheap: it uses indexes or small
 * tables.
 */

export const BATCHES_BEHIND: Sql = sql`
select count(*)::int as processing,
  coalesce(extract(epoch from now() - min(progressed_at)), 0)::float8 as oldest_seconds
from batches where status = 'PROCESSING'`;

/** The batches that a failure of their production canceled in the last day. Orders of merchants were lost. */
export const BATCHES_FAILED: Sql = sql`
select count(*)::int as failed, max(transaction_id::text) as transaction_id
from batches where status = 'CANCELED' and failure is not null and ended_at > now() - interval '1 day'`;

/** Rows in partitions of the future do not count. Deliveries are found by the index of those that are due. */
export const WEBHOOKS_BEHIND: Sql = sql`
select count(*)::int as due, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as oldest_seconds
from webhook_deliveries where state = 'PENDING' and due_at <= now()`;

/** Jobs that are due, and on which no process works. */
export const JOBS_BEHIND: Sql = sql`
select count(*)::int as due,
  coalesce(extract(epoch from now() - min(greatest(due_at, leased_until))), 0)::float8 as oldest_seconds
from jobs
where state in ('WAITING', 'RUNNING') and due_at <= now() and (leased_until is null or leased_until < now())`;

/** The expired batch that has waited longest for its sweep. */
export const SWEEP_BEHIND: Sql = sql`
select coalesce(extract(epoch from now() - min(expires_at)), 0)::float8 as seconds
from batches where status = 'COMPLETED' and swept_at is null and expires_at < now()`;

export const ENDPOINTS: Sql = sql`
select count(*) filter (where disabled_at is null and failing_since is null)::int as working,
  count(*) filter (where disabled_at is null and failing_since is not null)::int as failing,
  count(*) filter (where disabled_at is not null)::int as disabled
from webhook_endpoints where removed_at is null`;

export const FLOATS_LOW: Sql = sql`
select currency, count(*)::int as floats,
  count(*) filter (where balance_minor < coalesce(low_minor, topped_up_minor / 10))::int as low
from floats group by currency`;

export const GUESSES_TODAY: Sql = sql`
select coalesce(sum(guesses), 0)::int as guesses,
  count(*) filter (where blocked_at is not null)::int as blocked
from api_key_days where day = (now() at time zone 'UTC')::date`;

export const DATABASE_SIZE: Sql = sql`select pg_database_size(current_database())::float8 as bytes`;

export const ARCHIVER: Sql = sql`
select current_setting('archive_command') not in ('', 'true', '(disabled)') as archives,
  coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) as failing,
  extract(epoch from now() - last_archived_time)::float8 as last_seconds
from pg_stat_archiver`;

/** An account without the role pg_monitor does not see how far a standby is behind. */
export const STANDBYS: Sql = sql`
select count(*)::int as standbys,
  coalesce(extract(epoch from max(replay_lag)), 0)::float8 as seconds
from pg_stat_replication where application_name not in ('pg_basebackup', 'pg_receivewal')`;

export const TIMELINE: Sql = sql`
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer as timeline`;

export const LAST_CLOSE: Sql = sql`
select extract(epoch from now() - max(ends_at))::float8 as seconds from book_closings`;

/** The age of the last close; before the first close, the age of the first day of the books. */
export const CLOSED_UNTIL: Sql = sql`
select extract(epoch from now() - coalesce(
  (select max(ends_at) from book_closings),
  (select min(starts_at) from book_days)))::float8 as seconds`;

/** For how many of the three months ahead every partitioned table has its partition. */
export const PARTITIONS_AHEAD: Sql = sql`
select 3 - count(distinct month)::int as months from missing_partitions(now(), now()) where month > now()`;

export const DATABASE_AGE: Sql = sql`
select extract(epoch from now() - min(applied_at))::float8 as seconds from migrations`;

export const SERVER: Sql = sql`
select current_setting('server_version') as version,
  current_setting('server_version_num')::int as version_number,
  current_setting('fsync') as fsync,
  current_setting('synchronous_commit') as synchronous_commit,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('data_checksums') as data_checksums,
  current_setting('max_connections')::int as max_connections,
  (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
  extract(epoch from clock_timestamp())::float8 as clock,
  (select extract(epoch from greatest(h.at, 'epoch') - database_time()) from book_horizon h)::float8 as behind,
  current_setting('TimeZone') as time_zone`;
