import { type Sql, sql } from '../db/sql.ts';

/**
 * Sums the movements of vouchers in an interval by the month of activation, in a time zone. Replacements are
 * left out: a replacement voucher belongs to the same cohort.
 */
export function sumCohorts(from: Date, to: Date, zone: string): Sql {
  return sql`
select b.currency, b.product_id, b.merchant_id as issuer_id,
  date_trunc('month', v.activated_at at time zone ${zone})::date::text as issue_month, r.kind::text as kind,
  r.credit_account = v.serial_number as is_credit, count(*) as rows,
  sum(r.amount_minor)::bigint as amount_minor
from book_rows r
join vouchers v on v.bucket = r.bucket and v.serial_number = r.serial_number
join batches b on b.id = v.batch_id
where r.place >= id_floor(${from}::timestamptz, '-1 hour')
  and r.place < id_floor(${to}::timestamptz, '1 hour')
  and r.booked_at >= ${from} and r.booked_at < ${to} and r.kind <> 'REPLACEMENT'
  and v.serial_number in (r.debit_account, r.credit_account)
group by 1, 2, 3, 4, 5, 6`;
}

/** Counts the rows of the journal in an interval, at most up to a limit. */
export function countRows(from: Date, to: Date, most: number): Sql {
  return sql`
select count(*) as count from (
  select 1 from journal where id >= id_floor(${from}::timestamptz) and id < id_floor(${to}::timestamptz)
  limit ${most}
) r`;
}

/** Sums the reversals in an interval of redemptions from before a day began. */
export function sumReversals(from: Date, to: Date, dayStartsAt: Date): Sql {
  return sql`
select original_day::text as original_day, currency, merchant_id, product_id, rows, amount_minor
from earlier_reversals(${from}, ${to}, ${dayStartsAt})`;
}

/** Returns the serial number that ends a range of vouchers, or no row if fewer are left. */
export function findRangeEnd(after: bigint, vouchers: number): Sql {
  return sql`
select serial_number from vouchers where serial_number > ${after}
order by serial_number offset ${vouchers} limit 1`;
}

/**
 * Counts and sums the vouchers of a range with a balance at an instant, the end of a day: by the days until
 * they expire, by the days since they were activated or last redeemed, and by the month (in the zone) in
 * which they expire. A redemption with a voucher that it replaced counts, a correction does not. The balance
 * at the instant is today's balance less the movements since then.
 * @param range serial numbers after the first one, up to the second one
 */
export function sumAges(day: string, at: Date, zone: string, [after, upTo]: readonly [bigint, bigint]): Sql {
  return sql`
with since as (
  select j.bucket, s.serial, sum(s.amount) as net
  from journal j
  cross join lateral (
    values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor)
  ) as s (serial, amount)
  where j.id >= id_floor(${at}::timestamptz, '-1 hour') and j.occurred_at >= ${at}
    and s.serial > ${after} and s.serial <= ${upTo}
  group by 1, 2
), held as (
  select b.currency, b.product_id, b.merchant_id, v.balance_minor - coalesce(s.net, 0) as balance_minor,
    ceil(extract(epoch from v.expires_at - ${at}::timestamptz) / 86400) as days_left,
    extract(year from v.expires_at at time zone ${zone}) * 12
      + extract(month from v.expires_at at time zone ${zone})
      - extract(year from ${day}::date) * 12 - extract(month from ${day}::date) as months_left,
    floor(extract(epoch from ${at}::timestamptz - greatest(v.activated_at, v.earlier_use_at, (
      select max(j.occurred_at) from journal j
      where j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'REDEMPTION'
        and j.original_id is null and j.id >= id_floor(v.activated_at, '-1 hour') and j.occurred_at < ${at}
    ))) / 86400) as days_idle
  from vouchers v
  join batches b on b.id = v.batch_id
  left join since s on s.bucket = v.bucket and s.serial = v.serial_number
  where v.serial_number > ${after} and v.serial_number <= ${upTo}
    and (v.balance_minor > 0 or s.net <> 0) and v.balance_minor - coalesce(s.net, 0) > 0
)
select h.currency, h.product_id, h.merchant_id as issuer_id, a.basis,
  a.bounds[width_bucket(greatest(a.value, 0), a.bounds)]::integer as lower_bound, count(*) as rows,
  sum(h.balance_minor)::bigint as amount_minor
from held h
cross join lateral (values
  ('expires', h.days_left, array[0, 31, 61, 91, 181, 366]::numeric[]),
  ('idle', h.days_idle, array[0, 31, 61, 91, 181, 366]),
  ('month', h.months_left, array[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
) as a (basis, value, bounds)
group by 1, 2, 3, 4, 5`;
}

/** @param rows cohorts of a day as JSON */
export function insertCohorts(day: string, rows: string): Sql {
  return sql`
insert into book_cohorts (day, currency, product_id, issuer_id, issue_month, kind, is_credit, rows,
  amount_minor)
select ${day}::date, r.*
from json_to_recordset(${rows}::json) as r (currency text, product_id integer, issuer_id integer,
  issue_month date, kind entry_kind, is_credit boolean, rows bigint, amount_minor bigint)`;
}

/** @param rows reversals on a day as JSON */
export function insertReversals(day: string, rows: string): Sql {
  return sql`
insert into book_reversals (day, original_day, currency, merchant_id, product_id, rows, amount_minor)
select ${day}::date, r.*
from json_to_recordset(${rows}::json) as r (original_day date, currency text, merchant_id integer,
  product_id integer, rows bigint, amount_minor bigint)`;
}

/** @param rows ages of vouchers at the end of a day as JSON */
export function insertAging(day: string, rows: string): Sql {
  return sql`
insert into book_aging (day, currency, product_id, issuer_id, basis, lower_bound, vouchers, amount_minor)
select ${day}::date, r.*
from json_to_recordset(${rows}::json) as r (currency text, product_id integer, issuer_id integer,
  basis text, lower_bound integer, rows bigint, amount_minor bigint)`;
}

/** Lists the slices of an interval with their rows, and whether these are more than were sealed. */
export function listSlices(from: Date, to: Date): Sql {
  return sql`
with counted as (
  select r.slice_at, count(*) as rows from book_rows r
  where r.place >= id_floor(${from}::timestamptz, '-1 hour')
    and r.place < id_floor(${to}::timestamptz, '1 hour')
    and r.booked_at >= ${from} and r.booked_at < ${to}
  group by r.slice_at
)
select c.slice_at, c.rows, c.rows > coalesce(b.rows, 0) as is_late
from counted c left join book_seals b on b.starts_at = c.slice_at order by c.slice_at`;
}

/** Returns the number of the next transaction that writes. */
export function countTransactions(): Sql {
  return sql`select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as count`;
}

/** Returns whether this transaction may keep the books until it ends. */
export function lockKeeping(): Sql {
  return sql`
select pg_try_advisory_xact_lock(7311990014) as is_free,
  set_config('idle_in_transaction_session_timeout', '0', true)`;
}
