import { type Sql, sql } from '../../db/sql.ts';
import { balance, type Figure, fieldOf, moved, none, opening, when } from '../../figure.ts';
import { COMMISSION, kindsOn, listOf, type MovementKind } from '../../ledger/kinds.ts';
import { addDays } from '../../time.ts';
import { bookedBetween } from '../days.ts';
import { statementNumber } from '../formats.ts';
import {
  count,
  type Declaration,
  type Definition,
  id,
  merchant,
  money,
  product,
  text,
  time,
  word,
} from './report.ts';

/** The statements of merchants: of their floats, and of their settlement accounts. */

const OF_FLOAT = { account: 'FLOAT', merchantId: '{merchantId}' };
const RUNNING = none('The opening balance and the amounts up to this line.');

/**
 * The lines on a merchant's floats in the order of time, with the balance after each. A statement of
 * closed days has a number, which names its days and its float: that of one day is its number in camt.053.
 * Account numbers of reserves begin at 5,000,000,000.
 */
const floatLinesOf: Definition = {
  number: (scope, currency) => {
    const account = { kind: 'FLOAT', merchantId: Number(scope.merchantId), currency };
    return statementNumber(scope.from, addDays(scope.to, -1), account);
  },
  columns: {
    time: time(sql`occurred_at`),
    transactionId: text(sql`l.id`),
    kind: word(sql`kind`),
    reference: text(sql`reference`),
    bankReference: text(sql`(
      select string_agg(e.entry_reference, ' ' order by e.id)
      from bank_matches m join bank_entries e on e.id = m.entry_id where m.movement_id = l.id
    )`),
    amount: money(sql`amount_minor`, fieldOf('transaction.show', 'transactionId')),
    balance: money(
      sql`sum(coalesce(amount_minor, opening_minor)) over (
      partition by currency order by place, booked_at, l.id rows unbounded preceding
    )`,
      when({ kind: ['opening'] }, opening(OF_FLOAT), when({ kind: ['closing'] }, balance(OF_FLOAT), RUNNING)),
    ),
  },
  from(scope) {
    const { startsAt, endsAt } = scope;
    const merchantId = Number(scope.merchantId);
    return sql`
from (
  with lines as (${floatLines(merchantId, startsAt, endsAt)}), opened as (
    select currency, balance_minor from balances_at(${startsAt})
    where account_kind = 'FLOAT' and merchant_id = ${merchantId}
  ), shown as (select currency from lines union select currency from opened)
  select 0 as place, currency, null::uuid as id, ${startsAt}::timestamptz as occurred_at,
    ${startsAt}::timestamptz as booked_at, 'opening' as kind, null as reference, null::bigint as amount_minor,
    coalesce(balance_minor, 0) as opening_minor
  from shown left join opened using (currency)
  union all
  select 1, currency, id, occurred_at, booked_at, kind, reference, amount_minor, 0 from lines
  union all
  select 2, currency, null, ${endsAt}, ${endsAt}, 'closing', null, null, 0 from shown
) l
order by place, booked_at, l.id`;
  },
};

export const floatStatement: Declaration = {
  report: 'R6',
  name: 'float-statement',
  title: 'Float statement',
  use: "For a merchant, each month: every line on its float, with the bank's reference and the balance after it.",
  tables: [floatLinesOf],
  ofMerchant: 'always',
};

const floatLines = (merchantId: number, from: Date, to: Date): Sql => sql`
select j.id, j.occurred_at, j.booked_at, j.kind::text as kind, j.currency,
  coalesce(j.reference, b.reference) as reference,
  case when j.credit_account = f.account_id then j.amount_minor else -j.amount_minor end as amount_minor
from floats f
join book_rows j on f.account_id in (j.credit_account, j.debit_account)
left join batches b on b.id = j.batch_id
where f.merchant_id = ${merchantId} and j.merchant_id = ${merchantId}
  and j.kind in ${listOf(kindsOn('FLOAT'))}
  and (j.kind <> 'ACTIVATION' or j.batch_id is null)
  and ${bookedBetween(from, to)}`;

const OF_SETTLED = {
  ...{ account: 'SETTLEMENT', setsApart: 'true' },
  ...{ merchantId: '{merchantId}', product: '{product}' },
};

/** Payouts and opening balances have no product, and are the only ones without. */
const isOfProduct = (kind: string) => kind !== 'PAYOUT' && kind !== 'OPENING';
const ofProduct = (entries: Figure) =>
  when({ product: [''] }, none('Only payouts and opening balances have no product.'), entries);

const counted = (kind: string) =>
  count(sql`coalesce(sum(rows) filter (where kind = ${kind}), 0)`, ofProduct(moved({ ...OF_SETTLED, kind })));

const OF_ACCOUNT = { account: 'SETTLEMENT', merchantId: '{merchantId}' };

/** Commission is booked for all products of a day together. */
const inTotal = (figure: Figure) =>
  when({ product: ['total'] }, figure, none('Commission is booked once a day, for all products together.'));

const OF_COMMISSION: readonly string[] = COMMISSION;

/** Adds movements of a kind to a column of R7, and subtracts those of the kind that takes it back. */
const settled = (kind: string, reversal: MovementKind | null = null) => {
  const isCredit = kind === 'REDEMPTION' || kind === 'CASH_OUT' || kind === 'OPENING';
  const sum = isCredit ? 'net' : 'net-debits';
  const entries = moved({ ...OF_SETTLED, sum, kind: [kind, ...(reversal ? [reversal] : [])].join() });
  return money(
    sql`coalesce(sum(
    case when kind = ${reversal} or kind = 'OPENING' and debit_kind = 'SETTLEMENT' then -amount_minor
      else amount_minor end
  ) filter (where kind in (${kind}, ${reversal})), 0)`,
    OF_COMMISSION.includes(kind) ? inTotal(entries) : isOfProduct(kind) ? ofProduct(entries) : entries,
  );
};

const NET = sql`coalesce(sum(case when credit_kind = 'SETTLEMENT' then amount_minor else -amount_minor end), 0)`;
const ofAccount = (minor: Sql, figure: Figure) =>
  money(sql`case when grouping(product_id) = 1 then ${minor} end`, figure);

/**
 * The settled amounts of each merchant by product, then the settlement account from opening to closing
 * balance. A product whose rows of each kind cancel each other out is left out.
 */
const settledOf: Definition = {
  columns: {
    merchantId: id(sql`merchant_id`),
    merchant: merchant(sql`merchant_id`),
    product: product(sql`product_id`),
    redemptions: counted('REDEMPTION'),
    reversals: counted('REDEMPTION_REVERSAL'),
    earlierReversals: counted('EARLIER_REVERSAL'),
    redeemed: settled('REDEMPTION'),
    reversed: settled('REDEMPTION_REVERSAL'),
    earlierReversed: settled('EARLIER_REVERSAL'),
    refunded: settled('REFUND'),
    cashedOut: settled('CASH_OUT'),
    commission: settled('FEE', 'FEE_REVERSAL'),
    vat: settled('FEE_VAT', 'FEE_VAT_REVERSAL'),
    paidOut: settled('PAYOUT', 'PAYOUT_RETURN'),
    takenOver: settled('OPENING'),
    opening: ofAccount(sql`sum(opening_minor)`, opening(OF_ACCOUNT)),
    net: money(NET, inTotal(moved(OF_ACCOUNT))),
    closing: ofAccount(sql`sum(opening_minor) + ${NET}`, balance(OF_ACCOUNT)),
  },
  from: ({ from, to, startsAt, endsAt, merchantId = null }) => sql`
from (
  with earlier as (${earlierReversals(from, startsAt, endsAt)}), fees as (
    select currency, kind::text as kind, debit_kind, credit_kind, merchant_id, product_id, count(*) as rows,
      sum(amount_minor) as amount_minor
    from fee_movements where day >= ${from}::date and day < ${to}::date group by 1, 2, 3, 4, 5, 6
  ), lines as (
    select currency, kind::text as kind, debit_kind, credit_kind, merchant_id, product_id, rows, amount_minor
    from movements(${startsAt}, ${endsAt}) where 'SETTLEMENT' in (debit_kind, credit_kind)
    union all
    select currency, 'EARLIER_REVERSAL', 'SETTLEMENT', 'VOUCHER', merchant_id, product_id, rows, amount_minor
    from earlier
    union all
    select currency, 'REDEMPTION_REVERSAL', 'SETTLEMENT', 'VOUCHER', merchant_id, product_id, -rows,
      -amount_minor
    from earlier
    union all
    select * from fees
    union all
    -- Commission is booked without a product, so it is moved to the lines of its products.
    select currency, kind, debit_kind, credit_kind, merchant_id, 0, -rows, -amount_minor from fees
  )
  select *, 0 as opening_minor,
    sum(rows) over (partition by currency, merchant_id, product_id, kind) <> 0 as is_shown
  from lines
  union all
  select currency, null, null, null, merchant_id, null, null, null, balance_minor, false
  from balances_at(${startsAt}) where account_kind = 'SETTLEMENT'
) s
where ${merchantId}::int is null or merchant_id = ${merchantId}
group by grouping sets ((currency, merchant_id, product_id), (currency, merchant_id))
having grouping(product_id) = 1 or bool_or(is_shown)
order by merchant_id, grouping(product_id), product_id`,
};

export const settlementStatement: Declaration = {
  report: 'R7',
  name: 'settlement-statement',
  title: 'Settlement statement',
  use: 'For a merchant, each period of its terms: redemptions, commission, payouts and the settlement account.',
  tables: [settledOf],
  ofMerchant: 'optionally',
};

/**
 * Returns the reversals in an interval of redemptions before its first day. Those of closed days are read
 * from their sums, the rest from the journal.
 */
const earlierReversals = (first: string, from: Date, to: Date): Sql => sql`
select r.currency, r.merchant_id, r.product_id, sum(r.rows) as rows, sum(r.amount_minor) as amount_minor
from (
  with rest as (
    select coalesce(max(ends_at), ${from}) as starts_at from book_closings
    where starts_at >= ${from} and ends_at <= ${to}
  )
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
