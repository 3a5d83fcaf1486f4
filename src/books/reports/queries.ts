import { type Sql, sql } from '../../db/sql.ts';

/**
 * Lets a report run longer than a request. It reads aggregates; for an open day it also reads the rows since
 * the last sealed slice.
 */
export const allowLongReport: readonly Sql[] = [
  sql`set transaction read only`,
  sql`set local statement_timeout = '10min'`,
  sql`set local enable_bitmapscan = on`,
];

/** Lists the codes and scopes of products, and the names of merchants at a time. */
export function listNames(at: Date): Sql {
  return sql`
select 'merchant' as what, m.id,
  coalesce((
    select n.name from merchant_names n
    where n.merchant_id = m.id and n.until >= ${at} order by n.until limit 1
  ), m.name) as name,
  null::text as scope
from merchants m
union all
select 'product', id, code, scope::text from products`;
}

export function findClosed(day: string): Sql {
  return sql`select hash, closed_at from book_closings where day = ${day}::date`;
}

/**
 * Returns the balances at an instant and the movements from then until another instant, by currency and
 * account kind.
 */
export function sumKinds(from: Date, to: Date): Sql {
  return sql`
select p.currency, p.account_kind, sum(p.opening)::bigint as opening, sum(p.debits)::bigint as debits,
  sum(p.credits)::bigint as credits
from (
  select currency, account_kind, balance_minor as opening, 0 as debits, 0 as credits from balances_at(${from})
  union all
  select m.currency, e.account_kind, 0, e.debit_minor, e.credit_minor
  from movements(${from}, ${to}) m
  cross join lateral effects(
    m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor
  ) e
) p
group by 1, 2 order by 1, 2`;
}

/** Returns the balances at an instant, by currency and account kind. */
export function sumBalancesAt(at: Date): Sql {
  return sql`
select currency, account_kind, sum(balance_minor)::bigint as balance_minor from balances_at(${at})
group by 1, 2 order by 1, 2`;
}

/** Lists the balances of the closed days of an interval, by currency and account kind. */
export function listDayBalances(from: string, to: string): Sql {
  return sql`
select c.day::text as day, b.currency, b.account_kind, sum(b.balance_minor)::bigint as balance_minor
from book_closings c join book_balances b on b.day = c.day
where c.day >= ${from}::date and c.day < ${to}::date
group by 1, 2, 3 order by 1, 2, 3`;
}

export function listBalancesAt(at: Date): Sql {
  return sql`
select currency, account_kind, merchant_id, issuer_id, product_id, balance_minor from balances_at(${at})`;
}

/** Lists the movements of an interval. */
export function listMovements(from: Date, to: Date): Sql {
  return sql`
select currency, kind::text as kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id, rows,
  amount_minor
from movements(${from}, ${to})`;
}

/**
 * Lists the reversals in an interval of redemptions before its first day. Those of closed days are read from
 * their sums, the rest from the journal.
 */
export function listEarlierReversals(first: string, from: Date, to: Date): Sql {
  return sql`
with rest as (
  select coalesce(max(ends_at), ${from}) as starts_at from book_closings
  where starts_at >= ${from} and ends_at <= ${to}
)
select r.currency, r.merchant_id, r.product_id, sum(r.rows)::bigint as rows,
  sum(r.amount_minor)::bigint as amount_minor
from (
  select r.original_day, r.currency, r.merchant_id, r.product_id, r.rows, r.amount_minor
  from book_reversals r join book_closings c on c.day = r.day
  where c.starts_at >= ${from} and c.ends_at <= ${to}
  union all
  select e.original_day, e.currency, e.merchant_id, e.product_id, e.rows, e.amount_minor
  from rest cross join lateral earlier_reversals(rest.starts_at, ${to}) e
  where rest.starts_at < ${to}
) r
where r.original_day < ${first}::date
group by 1, 2, 3`;
}

/** Lists the commission of an interval and the VAT on it, by the product that they belong to. */
export function listCommission(from: string, to: string): Sql {
  return sql`
select currency, kind::text as kind, debit_kind, credit_kind, merchant_id, product_id, count(*) as rows,
  sum(amount_minor)::bigint as amount_minor
from fee_movements where day >= ${from}::date and day < ${to}::date group by 1, 2, 3, 4, 5, 6`;
}

/** Counts the vouchers with a balance at the end of each closed day of an interval. */
export function countVouchers(from: string, to: string): Sql {
  return sql`
select day::text as day, currency, product_id, issuer_id, sum(vouchers)::bigint as vouchers
from book_aging where basis = 'expires' and day >= ${from}::date and day < ${to}::date group by 1, 2, 3, 4`;
}

export function listAging(day: string): Sql {
  return sql`
select currency, product_id, issuer_id, basis, lower_bound, vouchers, amount_minor from book_aging
where day = ${day}::date order by currency, basis, lower_bound`;
}

/**
 * Lists the movements of vouchers up to a day by the month of activation and the expiry policy, and
 * separately those of the interval.
 */
export function listCohorts(from: string | null, to: string): Sql {
  return sql`
select currency, product_id, issuer_id, expiry_policy::text as expiry_policy,
  issue_month::text as issue_month, kind::text as kind, is_credit,
  (extract(year from age(date_trunc('month', day), issue_month)) * 12
    + extract(month from age(date_trunc('month', day), issue_month)))::int as months_since,
  sum(rows)::bigint as rows, sum(amount_minor)::bigint as amount_minor,
  coalesce(sum(amount_minor) filter (where day >= ${from}::date), 0)::bigint as recent_minor
from book_cohorts where day < ${to}::date group by 1, 2, 3, 4, 5, 6, 7, 8`;
}

/** Lists the breakage rates of products that are valid before a day. */
export function listRates(before: string): Sql {
  return sql`
select distinct on (product_id) product_id, rate_ppm, set_by, reason from book_breakage_rates
where valid_from < ${before}::date order by product_id, valid_from desc, id desc`;
}

export function insertRate(rate: {
  productId: number;
  from: string;
  ratePpm: number;
  by: string;
  reason: string;
  now: Date;
}): Sql {
  return sql`
insert into book_breakage_rates (product_id, valid_from, rate_ppm, set_by, reason, set_at)
values (${rate.productId}, ${rate.from}::date, ${rate.ratePpm}, ${rate.by}, ${rate.reason}, ${rate.now})`;
}

/**
 * Lists the lines that were booked on a merchant's floats, in the order of time and id. Account numbers
 * of reserves begin at 5,000,000,000.
 */
export function listFloatLines(merchantId: number, from: Date, to: Date): Sql {
  return sql`
select j.id, j.occurred_at, j.kind::text as kind, j.currency, coalesce(j.reference, b.reference) as reference,
  case when j.credit_account = f.account_id then j.amount_minor else -j.amount_minor end as amount_minor
from floats f
join book_rows j on f.account_id in (j.credit_account, j.debit_account)
left join batches b on b.id = j.batch_id
where f.merchant_id = ${merchantId} and j.merchant_id = ${merchantId}
  and j.kind in ('TOP_UP', 'RESERVATION', 'RELEASE', 'HOLD', 'HOLD_RELEASE', 'ACTIVATION', 'EXPIRY',
    'REINSTATEMENT', 'FLOAT_REFUND', 'FLOAT_CORRECTION', 'IMPORT', 'CANCELLATION')
  and (j.kind <> 'ACTIVATION' or j.batch_id is null)
  and j.place >= id_floor(${from}::timestamptz, '-1 hour')
  and j.place < id_floor(${to}::timestamptz, '1 hour')
  and j.booked_at >= ${from} and j.booked_at < ${to}
order by j.currency, j.booked_at, j.id`;
}

/** Lists the references of the bank entries that movements are matched with. */
export function listBankReferences(movements: readonly string[]): Sql {
  return sql`
select m.movement_id as id, string_agg(e.entry_reference, ' ' order by e.id) as reference
from bank_matches m join bank_entries e on e.id = m.entry_id
where m.movement_id = any (${movements}::uuid[]) group by m.movement_id`;
}

/** Lists the settlements of a merchant that overlap an interval, without drafts. */
export function listSettledIntervals(merchantId: number, from: Date, to: Date): Sql {
  return sql`
select currency, starts_at, ends_at,
  settlement_number(merchant_id, year, number) as number
from settlements
where merchant_id = ${merchantId} and state <> 'DRAFT' and ends_at > ${from} and starts_at < ${to}`;
}

/**
 * Lists a page of a merchant's own transactions that were booked in an interval, after an id, oldest first.
 */
export function listMerchantRows(
  merchantId: number,
  from: Date,
  to: Date,
  after: string | null,
  count: number,
): Sql {
  // Each part reads its own index. Late rows are few.
  return sql`
select j.id, j.occurred_at, j.kind::text as kind, j.serial_number, v.sealed, b.product_id, j.amount_minor,
  j.currency, j.reference, j.original_id, j.booked_at
from (
  (
    select r.*, r.occurred_at as booked_at from journal r
    where r.merchant_id = ${merchantId} and r.batch_id is null
      and r.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL')
      and r.id > greatest(${after}::uuid, id_floor(${from}::timestamptz, '-1 hour'))
      and r.id < id_floor(${to}::timestamptz, '1 hour') and r.occurred_at >= ${from} and r.occurred_at < ${to}
      and not exists (select from book_late_rows l where l.id = r.id)
    order by r.id limit ${count}
  )
  union all
  (
    select r.*, r.occurred_at from journal r
    where r.merchant_id = ${merchantId} and r.kind = 'CASH_OUT'
      and r.id > greatest(${after}::uuid, id_floor(${from}::timestamptz, '-1 hour'))
      and r.id < id_floor(${to}::timestamptz, '1 hour') and r.occurred_at >= ${from} and r.occurred_at < ${to}
      and not exists (select from book_late_rows l where l.id = r.id)
    order by r.id limit ${count}
  )
  union all
  (
    select r.*, l.slice_at from book_late_rows l join journal r on r.id = l.id
    where l.slice_at >= ${from} and l.slice_at < ${to} and r.merchant_id = ${merchantId}
      and r.batch_id is null and r.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL', 'CASH_OUT')
      and (${after}::uuid is null or r.id > ${after}::uuid)
    order by r.id limit ${count}
  )
) j
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
order by j.id limit ${count}`;
}

/**
 * Lists the batches of a merchant whose vouchers were activated by generation, possibly booked within an
 * interval.
 */
export function listGeneratedBatches(merchantId: number, from: Date, to: Date): Sql {
  return sql`
select id from batches
where merchant_id = ${merchantId} and value_minor is not null and activation = 'immediate'
  and status = 'COMPLETED' and (ended_at >= ${from} and accepted_at < ${to} or id in (
    select r.batch_id from book_late_rows l join journal r on r.id = l.id
    where l.slice_at >= ${from} and l.slice_at < ${to}
  ))
order by accepted_at, id`;
}

/**
 * Lists a page of the activations of a batch after a serial number. One that was booked outside of the
 * interval has no id.
 */
export function listGeneratedRows(batchId: number, from: Date, to: Date, after: bigint, count: number): Sql {
  return sql`
select case when coalesce(l.slice_at, j.occurred_at) >= ${from}
    and coalesce(l.slice_at, j.occurred_at) < ${to} then j.id end as id,
  j.occurred_at, j.kind::text as kind, v.serial_number, v.sealed, b.product_id, j.amount_minor, j.currency,
  b.reference, j.original_id, null::timestamptz as booked_at
from (
  select * from vouchers
  where batch_id = ${batchId} and serial_number > ${after} order by serial_number limit ${count}
) v
join batches b on b.id = v.batch_id
left join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
left join book_late_rows l on l.id = j.id
order by v.serial_number`;
}
