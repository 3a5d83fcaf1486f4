import { type Sql, sql } from '../db/sql.ts';
import { differingFees } from '../ledger/reconcile.settlements.ts';

/** Lists the slices of an interval whose rows differ from the sealed ones in number or hash. */
export function listBrokenSlices(from: Date, to: Date): Sql {
  return sql`
with found as (
  select r.slice_at, count(*) as rows,
    sha256(string_agg(r.digest, ''::bytea order by r.occurred_at, r.id)) as hash
  from book_rows r
  where r.place >= id_floor(${from}::timestamptz, '-1 hour')
    and r.place < id_floor(${to}::timestamptz, '1 hour')
    and r.booked_at >= ${from} and r.booked_at < ${to}
  group by r.slice_at
)
select coalesce(f.slice_at, b.starts_at) as slice_at
from found f
full join (select starts_at, rows, hash from book_seals where starts_at >= ${from} and starts_at < ${to}) b
  on b.starts_at = f.slice_at
where f.hash is distinct from b.hash or f.rows is distinct from b.rows
order by 1`;
}

/**
 * Lists the rows of a slice that differ from its listing. A row that was moved to another time is missing in
 * one slice and added in another.
 */
export function listBrokenRows(sliceAt: Date): Sql {
  return sql`
with listed as (
  select encode(substring(b.listing from (20 * i.at + 1)::int for 16), 'hex')::uuid as id,
    substring(b.listing from (20 * i.at + 17)::int for 4) as mark
  from book_seals b, generate_series(0, b.rows - 1) as i (at) where b.starts_at = ${sliceAt}
), found as (
  select r.id, substring(r.digest from 1 for 4) as mark from book_rows r
  where r.place >= id_floor(${sliceAt}::timestamptz, '-1 hour')
    and r.place < id_floor(${sliceAt}::timestamptz, '75 minutes') and r.slice_at = ${sliceAt}
)
select coalesce(l.id, f.id) as id,
  case when f.id is null then 'removed' when l.id is null then 'added' else 'altered' end as change
from listed l full join found f on f.id = l.id
where f.mark is distinct from l.mark
order by 1 limit 1000`;
}

/** Returns the bounds of a day by which reports find it. */
export function findDay(day: string): Sql {
  return sql`select starts_at, ends_at, zone from book_days where day = ${day}::date`;
}

/** Returns the hash over the sealed slices of a day. */
export function hashSeals(from: Date, to: Date): Sql {
  return sql`
select coalesce(sum(rows), 0)::bigint as rows,
  sha256(coalesce(string_agg(hash, ''::bytea order by starts_at), ''::bytea)) as rows_hash
from book_seals where starts_at >= ${from} and starts_at < ${to}`;
}

/**
 * Lists differences between a day's stored movements and balances and those computed from its slices and the
 * day before.
 */
export function listBrokenSums(day: string, before: string | null, from: Date, to: Date): Sql {
  return sql`
with sliced as (
  select currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id, sum(rows) as rows,
    sum(amount_minor) as amount_minor
  from book_slices where starts_at >= ${from} and starts_at < ${to} group by 1, 2, 3, 4, 5, 6, 7
), carried as (
  select p.currency, p.account_kind, p.merchant_id, p.issuer_id, p.product_id,
    sum(p.balance_minor) as balance_minor
  from (
    select currency, account_kind, merchant_id, issuer_id, product_id, balance_minor
    from book_balances where day = ${before}::date
    union all
    select m.currency, e.account_kind, e.owner_id, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
    from sliced m
    cross join lateral effects(
      m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor::bigint
    ) e
  ) p
  group by 1, 2, 3, 4, 5
)
select 'movements' as what, s.currency, s.kind::text as kind
from sliced s
full join (select * from book_movements where day = ${day}::date) m
  using (currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
where s.rows is distinct from m.rows or s.amount_minor is distinct from m.amount_minor
union all
select 'balances', currency, account_kind
from carried c
full join (select * from book_balances where day = ${day}::date) b
  using (currency, account_kind, merchant_id, issuer_id, product_id)
where coalesce(c.balance_minor, 0) <> coalesce(b.balance_minor, 0)
limit 100`;
}

/** Lists differences between the slices of an interval and the rows themselves. */
export function listBrokenAggregates(from: Date, to: Date): Sql {
  return sql`
select slice_at, currency, kind::text as kind
from slice_movements(${from}, ${to}) m
full join (
  select starts_at as slice_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id,
    rows, amount_minor
  from book_slices where starts_at >= ${from} and starts_at < ${to}
) s using (slice_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
where m.rows is distinct from s.rows or m.amount_minor is distinct from s.amount_minor
limit 100`;
}

/** Lists differences between the stored reversals of earlier days and the rows themselves. */
export function listBrokenReversals(day: string, from: Date, to: Date): Sql {
  return sql`
select currency, merchant_id
from earlier_reversals(${from}, ${to}) f
full join (select * from book_reversals where day = ${day}::date) r
  using (original_day, currency, merchant_id, product_id)
where (f.rows, f.amount_minor, f.again_minor) is distinct from (r.rows, r.amount_minor, r.again_minor)
limit 100`;
}

export function listLateRows(from: Date, to: Date): Sql {
  return sql`
select id, occurred_at, found_in::text as found_in from book_late_rows
where occurred_at >= ${from} and occurred_at < ${to} order by id limit 1000`;
}

/** Lists the closings that the audit recorded, each with the end of the chain before its entry. */
export function listAuditedClosings(): Sql {
  return sql`
select substr(subject, 5) as day, after::json ->> 'hash' as hash, sequence - 1 as before, previous_hash
from audit where action = 'books.close' order by sequence`;
}

/** Finds a run over all closed days that was interrupted before it found anything. */
export function findInterrupted(): Sql {
  return sql`
select r.id, r.verified_to::text as verified_to
from (select * from book_verifications order by id desc limit 1) r
where r.ended_at is null and r.breaks = 0`;
}

export function insertVerification(now: Date): Sql {
  return sql`insert into book_verifications (started_at) values (${now}) returning id`;
}

/** Records how far a run came. @param day null: no day was verified */
export function setVerified(id: number, day: string | null, breaks: number, endedAt: Date | null): Sql {
  return sql`
update book_verifications
set verified_to = coalesce(${day}::date, verified_to), breaks = ${breaks}, ended_at = ${endedAt}
where id = ${id}`;
}

/** The most differences that a check shows. */
const EXAMPLES = 10;

export type ClosedDay = { readonly day: string; readonly from: Date; readonly to: Date };

export const FLOATS_CHECK = 'floats are what is stored';

/** Blocks every other booking on a float until the transaction ends. */
export function lockFloats(): Sql {
  return sql`select account_id from floats order by account_id for update`;
}

/**
 * The checks of a day that is being closed (docs/explanation/books.md), one statement each. Each returns the
 * differences as JSON, or null if there are none. Amounts are text in minor units.
 */
export const dayChecks: Readonly<Record<string, (day: ClosedDay) => Sql>> = {
  'account kinds sum to zero': ({ day }) => sql`
select json_agg(d) as differing from (
  select currency, sum(balance_minor)::text as "sumMinor" from book_balances where day = ${day}::date
  group by currency having sum(balance_minor) <> 0 limit ${EXAMPLES}
) d`,

  'accounts are known': ({ day }) => sql`
select json_agg(d) as differing from (
  select currency, kind, debit_kind as "debitKind", credit_kind as "creditKind" from book_movements
  where day = ${day}::date and not is_movement(kind::text, debit_kind, credit_kind) limit ${EXAMPLES}
) d`,

  // The ages are moved on from the rows, so the balances of the vouchers are compared when they are sealed.
  'liability is what the vouchers hold': ({ day, from, to }) => sql`
select json_agg(d) as differing from (
  select null::bigint as "serialNumber", currency, product_id as "productId", issuer_id as "issuerId",
    l.balance_minor::text as "liabilityMinor", a.amount_minor::text as "vouchersMinor"
  from (
    select currency, product_id, issuer_id, balance_minor from book_balances
    where day = ${day}::date and account_kind = 'VOUCHER'
  ) l
  full join (
    select currency, product_id, issuer_id, sum(amount_minor) as amount_minor from book_aging
    where day = ${day}::date and basis = 'expires' group by 1, 2, 3
  ) a using (currency, product_id, issuer_id)
  where coalesce(l.balance_minor, 0) <> coalesce(a.amount_minor, 0)
  union all
  select u.serial, null, null, null, null, null
  from book_seals s cross join unnest(s.differing) as u (serial)
  where s.starts_at >= ${from} and s.starts_at < ${to}
  limit ${EXAMPLES}
) d`,

  'cohorts are what moved the vouchers': ({ day }) => sql`
select json_agg(d) as differing from (
  select currency, product_id as "productId", issuer_id as "issuerId", kind, m.minor::text as "movedMinor",
    c.minor::text as "cohortsMinor"
  from (
    select currency, product_id, issuer_id, kind,
      sum(case when credit_kind = 'VOUCHER' then amount_minor else -amount_minor end) as minor
    from book_movements
    where day = ${day}::date and 'VOUCHER' in (debit_kind, credit_kind) and kind <> 'REPLACEMENT'
    group by 1, 2, 3, 4
  ) m
  full join (
    select currency, product_id, issuer_id, kind,
      sum(case when is_credit then amount_minor else -amount_minor end) as minor
    from book_cohorts where day = ${day}::date group by 1, 2, 3, 4
  ) c using (currency, product_id, issuer_id, kind)
  where coalesce(m.minor, 0) <> coalesce(c.minor, 0) limit ${EXAMPLES}
) d`,

  [FLOATS_CHECK]: ({ day, to }) => sql`
with since as (
  select s.account, sum(s.amount) as net
  from journal j
  cross join lateral (
    values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor)
  ) as s (account, amount)
  where j.id >= id_floor(${to}::timestamptz, '-1 hour') and j.occurred_at >= ${to}
    and s.account < 5000000000
  group by 1
)
select json_agg(d) as differing from (
  select f.merchant_id as "merchantId", f.currency, b.balance_minor::text as "closingMinor",
    (f.balance_minor - coalesce(s.net, 0))::text as "storedMinor"
  from floats f
  left join since s on s.account = f.account_id
  full join (
    select merchant_id, currency, balance_minor from book_balances
    where day = ${day}::date and account_kind = 'FLOAT'
  ) b on b.merchant_id = f.merchant_id and b.currency = f.currency
  where coalesce(f.balance_minor, 0) - coalesce(s.net, 0) <> coalesce(b.balance_minor, 0) limit ${EXAMPLES}
) d`,

  'commission is what the terms of the day make of it': ({ day }) => differingFees(day),

  'every row of a slice is summed up': ({ from, to }) => sql`
select json_agg(d) as differing from (
  select starts_at as "slice", s.rows::text as "rows", m.rows::text as "summedUp"
  from (select starts_at, rows from book_seals where starts_at >= ${from} and starts_at < ${to}) s
  full join (
    select starts_at, sum(rows) as rows from book_slices
    where starts_at >= ${from} and starts_at < ${to} group by 1
  ) m using (starts_at)
  where s.rows is distinct from m.rows limit ${EXAMPLES}
) d`,
};
