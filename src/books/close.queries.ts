import { type Sql, sql } from '../db/sql.ts';

/**
 * Lets a close run longer than a request, and gives it memory for its sorts: it reads a whole day. The close
 * uses only one core of the database and leaves the others to the tills.
 */
export const allowLongWork = sql`
select set_config('max_parallel_workers_per_gather', '0', true), set_config('statement_timeout', '2h', true),
  set_config('work_mem', '64MB', true), set_config('enable_bitmapscan', 'on', true)`;

/**
 * Marks the newest transaction and returns the time up to which all transactions have ended
 * (sql/023-marks.sql).
 */
export function advanceMark(): Sql {
  return sql`select now_at, passed from advance_mark()`;
}

/** Lists prepared transactions that have not ended. A close may have to wait for them. */
export function listPrepared(): Sql {
  return sql`select gid, prepared from pg_prepared_xacts order by prepared limit 5`;
}

/** Seals the slices of an interval: stores the number, the hash and the listing of the rows of each slice. */
export function insertSeals(from: Date, to: Date): Sql {
  return sql`
insert into book_seals (starts_at, rows, hash, listing)
select r.slice_at, count(*), sha256(string_agg(r.digest, ''::bytea order by r.occurred_at, r.id)),
  string_agg(uuid_send(r.id) || substring(r.digest from 1 for 4), ''::bytea order by r.occurred_at, r.id)
from book_rows r
where r.place >= id_floor(${from}::timestamptz, '-1 hour')
  and r.place < id_floor(${to}::timestamptz, '1 hour')
  and r.booked_at >= ${from} and r.booked_at < ${to}
group by r.slice_at
returning rows`;
}

export function insertSlices(from: Date, to: Date): Sql {
  return sql`
insert into book_slices (starts_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id,
  product_id, rows, amount_minor)
select * from slice_movements(${from}, ${to})`;
}

export function setSealed(until: Date): Sql {
  return sql`update books set sealed_until = ${until}`;
}

/** Books the rows that a slice's listing does not name as late rows of another slice. */
export function insertLateRows(sliceAt: Date, bookedIn: Date, day: string): Sql {
  return sql`
insert into book_late_rows (id, occurred_at, slice_at, found_in)
select r.id, r.occurred_at, ${bookedIn}, ${day}::date
from book_rows r
where r.place >= id_floor(${sliceAt}::timestamptz, '-1 hour')
  and r.place < id_floor(${sliceAt}::timestamptz, '75 minutes') and r.slice_at = ${sliceAt}
  and uuid_send(r.id) not in (
    select substring(b.listing from (20 * i.at + 1)::int for 16)
    from book_seals b, generate_series(0, b.rows - 1) as i (at) where b.starts_at = ${sliceAt}
  )
returning id`;
}

export function insertMovements(day: string, from: Date, to: Date): Sql {
  return sql`
insert into book_movements (day, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id,
  rows, amount_minor)
select ${day}::date, s.currency, s.kind, s.debit_kind, s.credit_kind, s.merchant_id, s.issuer_id,
  s.product_id, sum(s.rows), sum(s.amount_minor)
from book_slices s where s.starts_at >= ${from} and s.starts_at < ${to} group by 2, 3, 4, 5, 6, 7, 8`;
}

/** Stores the balances at the end of a day: those of the day before, plus the movements of the day. */
export function insertBalances(day: string, before: string | null): Sql {
  return sql`
insert into book_balances (day, currency, account_kind, merchant_id, issuer_id, product_id, balance_minor)
select ${day}::date, p.currency, p.account_kind, p.merchant_id, p.issuer_id, p.product_id,
  sum(p.balance_minor)
from (
  select currency, account_kind, merchant_id, issuer_id, product_id, balance_minor
  from book_balances where day = ${before}::date
  union all
  select m.currency, e.account_kind, e.owner_id, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
  from book_movements m
  cross join lateral effects(
    m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor
  ) e
  where m.day = ${day}::date
) p
group by 2, 3, 4, 5, 6 having sum(p.balance_minor) <> 0`;
}

/** Returns a SHA-256 hash for each kind of aggregate of a day, over its rows in the order of their text. */
export function hashAggregates(day: string): Sql {
  return sql`
select a.what, encode(
  sha256(convert_to(string_agg(a.line, E'\n' order by a.line collate "C"), 'UTF8')), 'hex') as hash
from (
  select 'balances' as what,
    concat_ws('|', currency, account_kind, merchant_id, issuer_id, product_id, balance_minor) as line
  from book_balances where day = ${day}::date
  union all
  select 'movements', concat_ws('|', currency, kind, debit_kind, credit_kind, merchant_id, issuer_id,
    product_id, rows, amount_minor)
  from book_movements where day = ${day}::date
  union all
  select 'cohorts', concat_ws('|', currency, product_id, issuer_id, to_char(issue_month, 'YYYY-MM'), kind,
    is_credit, rows, amount_minor)
  from book_cohorts where day = ${day}::date
  union all
  select 'reversals', concat_ws('|', to_char(original_day, 'YYYY-MM-DD'), currency, merchant_id, product_id,
    rows, amount_minor)
  from book_reversals where day = ${day}::date
  union all
  select 'aging',
    concat_ws('|', currency, product_id, issuer_id, basis, lower_bound, vouchers, amount_minor)
  from book_aging where day = ${day}::date
) a
group by a.what order by a.what`;
}

/** Sums up the rows of a day from its seals. */
export function summarizeSeals(from: Date, to: Date): Sql {
  return sql`
select coalesce(sum(rows), 0)::bigint as rows,
  sha256(coalesce(string_agg(hash, ''::bytea order by starts_at), ''::bytea)) as rows_hash,
  (
    select encode(substring(listing from 1 for 16), 'hex') from book_seals
    where starts_at >= ${from} and starts_at < ${to} order by starts_at limit 1
  ) as first_id,
  (
    select encode(substring(listing from (20 * rows - 19)::int for 16), 'hex') from book_seals
    where starts_at >= ${from} and starts_at < ${to} order by starts_at desc limit 1
  ) as last_id
from book_seals where starts_at >= ${from} and starts_at < ${to}`;
}

/** Returns the trial balance of a closed day, by currency and account kind. */
export function sumDay(day: string, before: string | null): Sql {
  return sql`
select p.currency, p.account_kind, sum(p.opening)::text as opening, sum(p.debits)::text as debits,
  sum(p.credits)::text as credits, sum(p.closing)::text as closing
from (
  select currency, account_kind, balance_minor as opening, 0 as debits, 0 as credits, 0 as closing
  from book_balances where day = ${before}::date
  union all
  select currency, account_kind, 0, 0, 0, balance_minor from book_balances where day = ${day}::date
  union all
  select m.currency, e.account_kind, 0, e.debit_minor, e.credit_minor, 0
  from book_movements m
  cross join lateral effects(
    m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor
  ) e
  where m.day = ${day}::date
) p
group by 1, 2 order by 1, 2`;
}

export type ClosingRow = {
  readonly day: string;
  readonly starts_at: Date;
  readonly ends_at: Date;
  readonly zone: string;
  readonly rows: bigint;
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly rows_hash: Buffer;
  readonly totals: string;
  readonly version: number;
  readonly closed_at: Date;
  readonly previous_hash: Buffer;
};

export function insertClosing(row: ClosingRow, hash: Buffer): Sql {
  return sql`
insert into book_closings (day, starts_at, ends_at, zone, rows, first_id, last_id, rows_hash, totals, version,
  closed_at, previous_hash, hash)
values (${row.day}::date, ${row.starts_at}, ${row.ends_at}, ${row.zone}, ${row.rows}, ${row.first_id}::uuid,
  ${row.last_id}::uuid, ${row.rows_hash}, ${row.totals}, ${row.version}, ${row.closed_at},
  ${row.previous_hash}, ${hash})`;
}

/** Lists the closings of an interval of days, oldest first. */
export function listClosings(from: string | null, to: string | null): Sql {
  return sql`
select day::text as day, starts_at, ends_at, zone, rows, first_id::text as first_id,
  last_id::text as last_id, rows_hash, totals, version, closed_at, previous_hash, hash
from book_closings
where (${from}::date is null or day >= ${from}::date) and (${to}::date is null or day < ${to}::date)
order by day`;
}

export function findLastClosing(): Sql {
  return sql`select day::text as day, ends_at, hash from book_closings order by day desc limit 1`;
}

/** Returns when the oldest of the last closed days began. A close counts the rows from then on again. */
export function findRecountStart(days: number): Sql {
  return sql`
select min(c.starts_at) as starts_at
from (select starts_at from book_closings order by day desc limit ${days}) c`;
}
