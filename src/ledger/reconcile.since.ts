import { raw, sql } from '../db/sql.ts';
import { type Checks, EXAMPLES } from './reconcile.scope.ts';

/** What the check of activations shows of a voucher. */
export const ACTIVATED = `v.serial_number as "serialNumber", v.activated_at as "activatedAt",
    v.value_minor::text as "valueMinor", coalesce(a.activations, 0) as activations,
    a.amount_minor::text as "activationMinor"`;

/** What it counts of the voucher's rows. */
export const COUNTED = `count(*) filter (where kind in ('ACTIVATION', 'IMPORT')) as activations,
      count(*) filter (where kind = 'REPLACEMENT') as replacements, sum(amount_minor) as amount_minor`;

/** Whether a voucher differs from what was counted (`a`). `p` is the voucher that it replaced. */
export const NOT_ACTIVATED_ONCE = `case
      when p.serial_number is null
        then coalesce(a.activations, 0) <> (v.activated_at is not null)::int
          or coalesce(a.replacements, 0) > 0
          or v.value_minor is distinct from a.amount_minor
      else coalesce(a.activations, 0) <> (v.activated_at is not null and p.activated_at is null)::int
        or v.activated_at is not null and v.value_minor <> coalesce(a.amount_minor, 0)
        or p.activated_at is not null and v.activated_at is distinct from p.activated_at
        or v.activated_at is null and a.amount_minor is not null
    end`;

/** Compares the opening balances with the last closing. */
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
};

/** Compares the balances of all vouchers with their opening balances and the movements since. */
export const STOCK: Checks = {
  'voucher-totals': ({ since }) => sql`
with booked as (
  select p.currency, p.issuer_id, p.product_id, sum(p.minor) as minor
  from (
    select currency, issuer_id, product_id, balance_minor as minor from book_balances
    where day = ${since.day}::date and account_kind = 'VOUCHER'
    union all
    select m.currency, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
    from slice_movements(${since.at}::timestamptz, database_time() + interval '1 day') m
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

/** The checks of single vouchers, limited to those that moved. */
export const TOUCHED: Checks = {
  // A replaced voucher holds nothing: a constraint of the table says so.
  'voucher-balances': ({ since }) => {
    const touched = sql`
    select distinct bucket, serial_number from journal
    where id >= ${since.id}::uuid and serial_number is not null`;
    return sql`
select (select count(*) from (${touched}) t) as checked, json_agg(d) as differing from (
  select t.serial_number as "serialNumber", v.balance_minor::text as "balanceMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor", b.currency, m.currency as "journalCurrency"
  from (${touched}) t
  left join vouchers v on v.bucket = t.bucket and v.serial_number = t.serial_number
  left join batches b on b.id = v.batch_id
  left join lateral (
    select sum(case t.serial_number
        when j.credit_account then j.amount_minor when j.debit_account then -j.amount_minor
      end) as amount_minor,
      min(j.currency) as currency, max(j.currency) as other_currency
    from journal j
    where j.bucket = t.bucket and j.serial_number = t.serial_number
      and t.serial_number in (j.credit_account, j.debit_account)
  ) m on true
  where v.closed is distinct from 'REPLACED' and (
    v.balance_minor is distinct from coalesce(m.amount_minor, 0)
    or m.currency <> m.other_currency or m.currency <> b.currency)
  limit ${EXAMPLES}
) d`;
  },

  activations: ({ since }) => {
    const active = sql`
    union select bucket, serial_number from vouchers where activated_at >= ${since.at}::timestamptz`;
    const touched = sql`
    select distinct bucket, serial_number from journal
    where id >= ${since.id}::uuid and kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT')
    ${since.readsVouchers ? active : sql``}`;
    return sql`
select (select count(*) from (${touched}) t) as checked, json_agg(d) as differing from (
  select ${raw(ACTIVATED)}
  from (${touched}) t
  join vouchers v on v.bucket = t.bucket and v.serial_number = t.serial_number
  left join lateral (
    select ${raw(COUNTED)}
    from journal j
    where j.bucket = t.bucket and j.serial_number = t.serial_number
      and j.kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT')
  ) a on true
  left join vouchers p on p.bucket = v.bucket and p.replaced_by = v.serial_number
  where ${raw(NOT_ACTIVATED_ONCE)}
  limit ${EXAMPLES}
) d`;
  },
};
