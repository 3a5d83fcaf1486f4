import { type Sql, sql } from '../db/sql.ts';

/**
 * Locks the row of the books until the transaction ends. Meanwhile no day is closed, no slice is sealed, and
 * no voucher is swept.
 */
export function lockBooks(): Sql {
  return sql`
select zone, grace_minutes, sealed_until, passed_at, database_time() as now from books for update`;
}

export function findBooks(): Sql {
  return sql`select zone, grace_minutes, sealed_until, passed_at, database_time() as now from books`;
}

/** Adds the rows of all days up to now. */
export function openDays(): Sql {
  return sql`select open_days(database_time())`;
}

/**
 * Returns the last closed day, or null. The books are locked until the transaction ends, so no day is closed
 * meanwhile.
 */
export const lockLastClosed = sql`
select (select max(day)::text from book_closings) as day from books for share`;

export function setZone(zone: string): Sql {
  return sql`update books set zone = ${zone}`;
}

export function setGrace(minutes: number): Sql {
  return sql`update books set grace_minutes = ${minutes}`;
}

/** Returns no row for a zone that PostgreSQL does not know. */
export function findZone(zone: string): Sql {
  return sql`select name from pg_timezone_names where name = ${zone}`;
}

/** Returns the end of the newest day, and the end that the day after it would have in another zone. */
export function nextDayIn(zone: string): Sql {
  return sql`
select d.ends_at as starts_at, (d.day + 2)::timestamp at time zone ${zone} as ends_at
from book_days d order by d.day desc limit 1`;
}

/** Lists the days of an interval, oldest first, with the closings of those that are closed. */
export function listDayRows(from: string | null, to: string | null): Sql {
  return sql`
select d.day::text as day, d.starts_at, d.ends_at, d.zone, c.rows, c.hash, c.closed_at, database_time() as now
from book_days d left join book_closings c on c.day = d.day
where (${from}::date is null or d.day >= ${from}::date) and (${to}::date is null or d.day < ${to}::date)
order by d.day`;
}

/** Returns the oldest day that is not closed. */
export function findOpenDay(): Sql {
  return sql`
select d.day::text as day, d.starts_at, d.ends_at, d.zone from book_days d
where not exists (select from book_closings c where c.day = d.day) order by d.day limit 1`;
}

/** Lists expired batches whose sweep has not finished, earliest expiry first. */
export function listExpiredBatches(now: Date, count: number): Sql {
  return sql`
select id from batches where status = 'COMPLETED' and swept_at is null and expires_at <= ${now}
order by expires_at limit ${count}`;
}

/** Locks a batch for a sweep. Returns no row if another sweep has it. */
export function lockExpiredBatch(id: number): Sql {
  return sql`
select swept_to from batches where id = ${id} and swept_at is null for update skip locked`;
}

/** Lists the next vouchers of a batch after a serial number. */
export function listBatchSerials(id: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, bucket,
  closed is null and (is_funded(balance_minor, activated_at, payer_id) or expires_at > b.batch_expires_at)
    as counts
from vouchers, (select expires_at as batch_expires_at from batches where id = ${id}) b
where batch_id = ${id} and serial_number > ${after} order by serial_number limit ${count}`;
}

/** Records the progress of a sweep. @param lapsed how many more vouchers were found inactive */
export function setSwept(id: number, sweptTo: bigint, lapsed: number, sweptAt: Date | null): Sql {
  return sql`
update batches set swept_to = ${sweptTo}, lapsed = lapsed + ${lapsed}, swept_at = ${sweptAt}
where id = ${id}`;
}

/** Returns the price of the vouchers that a finished sweep found inactive (sql/015-booking.sql). */
export function releaseLapsed(batchId: number, entryId: string, now: Date): Sql {
  return sql`select release_lapsed(${batchId}, ${entryId}, ${now})`;
}

/** Lists vouchers that have expired separately from their batch, after the last one of a page. */
export function listDueVouchers(now: Date, after: { due: Date | null; serial: bigint }, count: number): Sql {
  return sql`
select serial_number, bucket, due_at from voucher_expiries
where due_at <= ${now}
  and (${after.due}::timestamptz is null or (due_at, serial_number) > (${after.due}, ${after.serial}))
order by due_at, serial_number limit ${count}`;
}

/**
 * Sweeps vouchers of one bucket (sql/015-booking.sql).
 * @param batchId the batch whose sweep this is; null for vouchers that expire by themselves
 */
export function sweepVouchers(
  bucket: number,
  serials: string,
  ids: string,
  batchId: number | null,
  now: Date,
): Sql {
  return sql`
select swept, lapsed
from sweep_vouchers(${bucket}, ${serials}::bigint[], ${ids}::uuid[], ${batchId}, ${now})`;
}

/**
 * Returns whether a voucher that expired before a time has not been swept. (Citus takes no subquery without a
 * column.)
 */
export function findUnswept(before: Date): Sql {
  return sql`
select exists (
    select 1 from batches where status = 'COMPLETED' and swept_at is null and expires_at < ${before}
  )
  or exists (select 1 from voucher_expiries where due_at < ${before}) as found`;
}

/**
 * Returns what each float of some merchants paid for since a time, less what was returned to it, and the
 * age of the merchant in days. It reads sealed slices, so the last hour or two are missing.
 */
export function listUse(merchantIds: readonly number[], since: Date, now: Date): Sql {
  return sql`
select f.merchant_id, f.currency, f.decimals, f.balance_minor,
  coalesce(u.used_minor, 0)::bigint as used_minor,
  extract(epoch from ${now}::timestamptz - m.created_at) / 86400 as days
from unnest(${merchantIds}::integer[]) w (id)
-- \`offset 0\` keeps these look-ups: else the sums of all merchants may be made before these are picked.
cross join lateral (select r.created_at from merchants r where r.id = w.id offset 0) m
cross join lateral (select r.* from floats r where r.merchant_id = w.id offset 0) f
cross join lateral (
  select sum(case s.debit_kind when 'FLOAT' then s.amount_minor else -s.amount_minor end) as used_minor
  from book_slices s
  where s.merchant_id = f.merchant_id and s.currency = f.currency and s.starts_at >= ${since}
    and (s.debit_kind = 'FLOAT' or s.credit_kind = 'FLOAT')
    and s.kind in ('RESERVATION', 'RELEASE', 'ACTIVATION', 'HOLD', 'HOLD_RELEASE', 'IMPORT')
) u
order by f.merchant_id, f.currency`;
}

/** Selects the floats of one merchant or of all, and only those that are low or all. */
export type FloatFilter = { readonly merchantId: number | null; readonly isLow: boolean };

const ID_MAX = 2 ** 31 - 1;

/** Lists floats after a given one, merchant by merchant. */
export function listFloatPage(
  { merchantId, isLow }: FloatFilter,
  afterId: number,
  currency: string,
  count: number,
): Sql {
  const [least, most] = merchantId === null ? [0, ID_MAX] : [merchantId, merchantId];
  return sql`
select f.merchant_id, m.name as merchant, f.currency,
  coalesce(f.low_minor, f.topped_up_minor / 10) as low_minor
from floats f join merchants m on m.id = f.merchant_id
where (f.merchant_id, f.currency) > (${afterId}, ${currency}) and f.merchant_id between ${least} and ${most}
  and (not ${isLow} or f.balance_minor < coalesce(f.low_minor, f.topped_up_minor / 10))
order by f.merchant_id, f.currency limit ${count}`;
}
