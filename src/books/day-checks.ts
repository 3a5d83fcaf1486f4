import { type Sql, sql } from '../db/sql.ts';
import { FIRST_RESERVE } from '../ledger/kinds.ts';
import { differingFees } from '../ledger/reconcile.books.ts';
import { EXAMPLES, statementOf } from '../ledger/reconcile.scope.ts';
import type { BookDay } from './days.ts';

export const FLOATS_CHECK = 'floats are what is stored';

/**
 * The checks of a day that is being closed (docs/explanation/books.md), one statement each. Each returns the
 * differences as JSON, or null if there are none. Amounts are text in minor units.
 */
export const dayChecks: Readonly<Record<string, (day: BookDay) => Sql>> = {
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
  'liability is what the vouchers hold': ({ day, startsAt, endsAt }) => sql`
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
  where s.starts_at >= ${startsAt} and s.starts_at < ${endsAt}
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

  [FLOATS_CHECK]: ({ day, endsAt }) => sql`
with since as (
  select s.account, sum(s.amount) as net
  from journal j
  cross join lateral (
    values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor)
  ) as s (account, amount)
  where j.id >= id_floor(${endsAt}::timestamptz, '-1 hour') and j.occurred_at >= ${endsAt}
    and s.account < ${FIRST_RESERVE}
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

  'commission is what the terms of the day make of it': ({ day }) => statementOf(differingFees(day)),

  'every row of a slice is summed up': ({ startsAt, endsAt }) => sql`
select json_agg(d) as differing from (
  select starts_at as "slice", s.rows::text as "rows", m.rows::text as "summedUp"
  from (select starts_at, rows from book_seals where starts_at >= ${startsAt} and starts_at < ${endsAt}) s
  full join (
    select starts_at, sum(rows) as rows from book_slices
    where starts_at >= ${startsAt} and starts_at < ${endsAt} group by 1
  ) m using (starts_at)
  where s.rows is distinct from m.rows limit ${EXAMPLES}
) d`,
};
