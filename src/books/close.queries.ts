import { type Sql, sql } from '../db/sql.ts';

/**
 * Lets a close run longer than a request, and gives it memory for its sorts: it reads a whole day. The close
 * uses only one core of the database and leaves the others to the tills.
 */
export const allowLongWork = sql`
select set_config('max_parallel_workers_per_gather', '0', true), set_config('statement_timeout', '2h', true),
  set_config('work_mem', '64MB', true), set_config('enable_bitmapscan', 'on', true),
  set_config('TimeZone', 'UTC', true)`;

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

/** Returns the times up to which slices are sealed, and may be sealed (sql/025-seals.sql). */
export function findSealable(): Sql {
  return sql`select sealed_until, sealable_until() as sealable from books`;
}

/** Seals the slices from the last sealed one up to a time (sql/025-seals.sql). Returns the number of rows. */
export function seal(until: Date): Sql {
  return sql`select seal(${until}) as rows`;
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

/** Lists the late rows that were booked on a day. */
export function listBookedLate(day: string): Sql {
  return sql`select id from book_late_rows where found_in = ${day}::date order by id`;
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

/**
 * Counts and sums the vouchers with a balance at the end of a day by their ages: by the days until the day on
 * which they expire, by the days since the day of their last use, and by the month in which they expire. Days
 * and months are those of the day's time zone. Call it when the day is sealed.
 */
export function insertAging(day: string, zone: string): Sql {
  return sql`
insert into book_aging (day, currency, product_id, issuer_id, basis, lower_bound, vouchers, amount_minor)
select ${day}::date, h.currency, h.product_id, h.issuer_id, b.basis,
  b.bounds[width_bucket(greatest(b.age, 0), b.bounds)], sum(h.vouchers), sum(h.amount_minor)
from (
  select a.*, case a.basis
      when 'expires' then (a.at at time zone ${zone})::date
      else coalesce(
        (select d.day from book_days d where d.starts_at = a.at),
        (select (a.at at time zone d.zone)::date from book_days d order by d.day limit 1)
      )
    end as on_day
  from book_ages a
) h
cross join lateral (values
  (h.basis, case h.basis when 'expires' then h.on_day - ${day}::date else ${day}::date - h.on_day end,
    array[0, 31, 61, 91, 181, 366]),
  (case h.basis when 'expires' then 'month' end,
    (extract(year from h.on_day) * 12 + extract(month from h.on_day)
      - extract(year from ${day}::date) * 12 - extract(month from ${day}::date))::integer,
    array[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
) as b (basis, age, bounds)
where b.basis is not null
group by 2, 3, 4, 5, 6 having sum(h.vouchers) <> 0 or sum(h.amount_minor) <> 0`;
}

/**
 * Returns the SHA-256 hash over the ages at the end of the last closed day, or of the day that is being
 * closed: the present ones less the changes since.
 */
export function hashAges(endsAt: Date): Sql {
  return sql`
select encode(
  sha256(convert_to(coalesce(string_agg(s.line, E'\n' order by s.line collate "C"), ''), 'UTF8')), 'hex') as hash
from (
  select concat_ws('|', a.currency, a.product_id, a.issuer_id, a.basis, extract(epoch from a.at)::bigint,
    sum(a.vouchers), sum(a.amount_minor)) as line
  from (
    select * from book_ages
    union all
    select m.currency, m.product_id, m.issuer_id, m.basis, age_of(m.basis, m.at), -m.vouchers, -m.amount_minor
    from books b cross join lateral moved_ages(${endsAt}, b.sealed_until) m
    where b.sealed_until > ${endsAt}
  ) a
  group by a.currency, a.product_id, a.issuer_id, a.basis, a.at
  having sum(a.vouchers) <> 0 or sum(a.amount_minor) <> 0
) s`;
}

/**
 * Returns a SHA-256 hash for each kind of aggregate of a day, and for the terms of the batches that were
 * accepted on it, over the rows in the order of their text.
 */
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
  select 'cohorts', concat_ws('|', currency, product_id, issuer_id, expiry_policy,
    to_char(issue_month, 'YYYY-MM'), kind, is_credit, rows, amount_minor)
  from book_cohorts where day = ${day}::date
  union all
  select 'reversals', concat_ws('|', to_char(original_day, 'YYYY-MM-DD'), currency, merchant_id, product_id,
    rows, amount_minor, again_minor)
  from book_reversals where day = ${day}::date
  union all
  select 'batches', (to_jsonb(b) - '{produced,status,progressed_at,ended_at,failures,failing_since,failure,
    voided_at,swept_to,swept_at,lapsed}'::text[])::text
  from book_days d join batches b on b.accepted_at >= d.starts_at and b.accepted_at < d.ends_at
  where d.day = ${day}::date
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

/** Returns whether this transaction may keep the books until it ends. */
export function lockKeeping(): Sql {
  return sql`
select pg_try_advisory_xact_lock(7311990014) as is_free,
  set_config('idle_in_transaction_session_timeout', '0', true)`;
}
