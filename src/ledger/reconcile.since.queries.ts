import { type Sql, sql } from '../db/sql.ts';
import { type Checks, EXAMPLES } from './reconcile.check.ts';

/** Finds the last closing, at which a reconciliation begins that does not read closed days. */
export function findLastClosing(): Sql {
  return sql`select day::text as day, ends_at from book_closings order by day desc limit 1`;
}

/**
 * Compares the opening balances with the last closing, and the balances of vouchers with the movements since.
 */
export const OPENING: Checks = {
  // Only the totals of the closing are compared. `scrip books verify` proves the closing itself.
  opening: ({ since }) => sql`
with closed as (
  select b.* from book_closings c
  cross join lateral json_to_recordset(c.totals::json -> 'balances')
    as b (currency text, account_kind text, closing numeric)
  where c.day = ${since.day}::date
), stored as (
  select currency, account_kind, sum(balance_minor) as minor from book_balances
  where day = ${since.day}::date group by 1, 2
)
select (select count(*) from book_balances where day = ${since.day}::date) as checked,
  json_agg(d) as differing from (
  select currency, account_kind as "accountKind", s.minor::text as "balanceMinor",
    c.closing::text as "closedMinor"
  from stored s full join closed c using (currency, account_kind)
  where coalesce(s.minor, 0) <> coalesce(c.closing, 0)
  limit ${EXAMPLES}
) d`,

  'voucher-totals': ({ since }) => sql`
with booked as (
  select p.currency, p.issuer_id, p.product_id, sum(p.minor) as minor
  from (
    select currency, issuer_id, product_id, balance_minor as minor from book_balances
    where day = ${since.day}::date and account_kind = 'VOUCHER'
    union all
    select m.currency, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
    from slice_movements(${since.at}::timestamptz, clock_timestamp() + interval '1 day') m
    cross join lateral effects(
      m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor
    ) e
    where e.account_kind = 'VOUCHER'
  ) p
  group by 1, 2, 3
), held as (
  select b.currency, b.merchant_id as issuer_id, b.product_id, sum(v.minor) as minor, sum(v.rows) as rows
  from (
    select batch_id, sum(balance_minor) as minor, count(*) as rows from vouchers group by batch_id
  ) v
  join batches b on b.id = v.batch_id
  group by 1, 2, 3
)
select (select sum(rows) from held)::bigint as checked, json_agg(d) as differing from (
  select currency, issuer_id as "merchantId", product_id as "productId",
    coalesce(h.minor, 0)::text as "balanceMinor", coalesce(b.minor, 0)::text as "journalMinor"
  from held h full join booked b using (currency, issuer_id, product_id)
  where coalesce(h.minor, 0) <> coalesce(b.minor, 0)
  limit ${EXAMPLES}
) d`,
};
