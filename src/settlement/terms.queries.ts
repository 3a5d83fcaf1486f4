import { plainArray, type Sql, sql } from '../db/sql.ts';

export type NewTerms = {
  readonly merchantId: number;
  /** 0 means all products without terms of their own. */
  readonly productId: number;
  readonly validFrom: string;
  readonly commissionPpm: number;
  readonly vatPpm: number;
  readonly period: 'day' | 'week' | 'month' | null;
  /** The amount in major units, as text. */
  readonly leastPayout: string | null;
  readonly delayDays: number | null;
  readonly payee: string | null;
  readonly payeeLast4: string | null;
  /** The keyed digest of the IBAN. */
  readonly payeeDigest: Buffer | null;
  readonly by: string;
  readonly now: Date;
};

/** Returns no row if there are already terms from this day on. */
export function insertTerms(terms: NewTerms): Sql {
  const { merchantId, productId, validFrom, commissionPpm, vatPpm, period, leastPayout, delayDays } = terms;
  return sql`
insert into settlement_terms (merchant_id, product_id, valid_from, commission_ppm, vat_ppm, period,
  least_payout, delay_days, payee, payee_last4, payee_digest, made_by, made_at)
values (${merchantId}, ${productId}, ${validFrom}::date, ${commissionPpm}, ${vatPpm},
  ${period}::settlement_period, ${leastPayout}::numeric, ${delayDays}, ${terms.payee}, ${terms.payeeLast4},
  ${terms.payeeDigest}, ${terms.by}, ${terms.now})
on conflict do nothing returning merchant_id`;
}

export type TermsRow = {
  merchant_id: number;
  product_id: number;
  product: string | null;
  valid_from: string;
  commission_ppm: number;
  vat_ppm: number;
  period: NewTerms['period'];
  least_payout: string | null;
  delay_days: number | null;
  payee: string | null;
  payee_last4: string | null;
  payee_digest: Buffer | null;
  made_by: string;
};

export function listTerms(merchantId: number): Sql {
  return sql`
select t.merchant_id, t.product_id, p.code as product, t.valid_from::text, t.commission_ppm, t.vat_ppm,
  t.period, trim_scale(t.least_payout)::text as least_payout, t.delay_days, t.payee, t.payee_last4,
  t.payee_digest, t.made_by
from settlement_terms t left join products p on p.id = t.product_id
where t.merchant_id = ${merchantId} order by t.product_id, t.valid_from limit 10000`;
}

/** Returns the terms of the merchant (not of a product) on a day. */
export function findMerchantTerms(merchantId: number, day: string): Sql {
  return sql`
select t.merchant_id, t.product_id, null as product, t.valid_from::text, t.commission_ppm, t.vat_ppm,
  t.period, trim_scale(t.least_payout)::text as least_payout, t.delay_days, t.payee, t.payee_last4,
  t.payee_digest, t.made_by
from settlement_terms t
where t.merchant_id = ${merchantId} and t.product_id = 0 and t.valid_from <= ${day}::date
order by t.valid_from desc limit 1`;
}

export type NetRow = {
  /** The day of the redemptions. */
  of_day: string;
  merchant_id: number;
  product_id: number;
  currency: string;
  net_minor: bigint;
  commission_ppm: number;
  vat_ppm: number;
  settlement_account: bigint;
  fees_account: bigint;
  vat_account: bigint;
};

/**
 * Lists each merchant's redemptions of a day less reversals, by product and by the day of the redemption,
 * with the terms of that day and the accounts to book on. What takes the place of an earlier redemption
 * belongs to the day of that one. Terms of the product take precedence over terms of the merchant. Merchants
 * without terms are left out. Sealed slices are read from their sums, the rest of the day from the journal.
 */
export function listNets(day: string, startsAt: Date, endsAt: Date): Sql {
  return sql`
with sealed as (
  select greatest(coalesce(sealed_until, ${startsAt}::timestamptz), ${startsAt}::timestamptz) as until
  from books
), corrected as (
  select original_day, merchant_id, product_id, currency, again_minor - amount_minor as minor
  from book_reversals where day = ${day}::date
  union all
  select e.original_day, e.merchant_id, e.product_id, e.currency, e.again_minor - e.amount_minor
  from sealed cross join lateral earlier_reversals(sealed.until, ${endsAt}, ${startsAt}) e
), moved as (
  select ${day}::date as of_day, merchant_id, product_id, currency,
    case kind when 'REDEMPTION' then amount_minor else -amount_minor end as minor
  from movements(${startsAt}, ${endsAt}) where kind in ('REDEMPTION', 'REDEMPTION_REVERSAL')
  union all
  select ${day}::date, merchant_id, product_id, currency, -minor from corrected
  union all
  select original_day, merchant_id, product_id, currency, minor from corrected
)
select n.of_day::text as of_day, n.merchant_id, n.product_id, n.currency, n.net_minor, t.commission_ppm,
  t.vat_ppm, s.id as settlement_account, f.id as fees_account, v.id as vat_account
from (
  select of_day, merchant_id, product_id, currency, sum(minor)::bigint as net_minor
  from moved group by 1, 2, 3, 4 having sum(minor) <> 0
) n
cross join lateral (
  select r.commission_ppm, r.vat_ppm from settlement_terms r
  where r.merchant_id = n.merchant_id and r.product_id in (0, n.product_id) and r.valid_from <= n.of_day
  order by r.product_id = 0, r.valid_from desc limit 1
) t
left join accounts s on s.kind = 'SETTLEMENT' and s.merchant_id = n.merchant_id and s.currency = n.currency
left join accounts f on f.kind = 'FEES' and f.merchant_id = 0 and f.currency = n.currency
left join accounts v on v.kind = 'VAT' and v.merchant_id = 0 and v.currency = n.currency
order by n.merchant_id, n.product_id, n.currency, n.of_day`;
}

/** Lists the ids of the commission rows of a day. */
export function listFees(day: string): Sql {
  return sql`select fee_id, vat_id from settlement_fees where day = ${day}::date`;
}

export function countRows(ids: readonly string[]): Sql {
  return sql`select count(*) as rows from journal where id = any (${plainArray(ids)}::uuid[])`;
}

export type NewFee = {
  readonly ofDay: string;
  readonly merchantId: number;
  readonly productId: number;
  readonly currency: string;
  readonly netMinor: bigint;
  readonly commissionPpm: number;
  readonly vatPpm: number;
  readonly feeMinor: bigint;
  readonly vatMinor: bigint;
  readonly feeId: string | null;
  readonly vatId: string | null;
};

/** Records the figures from which the commission of a day was computed. */
export function insertFees(day: string, fees: readonly NewFee[]): Sql {
  const column = (of: (fee: NewFee) => string | number | bigint | null) => plainArray(fees.map(of));
  return sql`
insert into settlement_fees (day, of_day, merchant_id, product_id, currency, net_minor, commission_ppm,
  vat_ppm, fee_minor, vat_minor, fee_id, vat_id)
select ${day}::date, u.*
from unnest(
  ${column((fee) => fee.ofDay)}::date[],
  ${column((fee) => fee.merchantId)}::int[], ${column((fee) => fee.productId)}::int[],
  ${column((fee) => fee.currency)}::text[], ${column((fee) => fee.netMinor)}::bigint[],
  ${column((fee) => fee.commissionPpm)}::int[], ${column((fee) => fee.vatPpm)}::int[],
  ${column((fee) => fee.feeMinor)}::bigint[], ${column((fee) => fee.vatMinor)}::bigint[],
  ${column((fee) => fee.feeId)}::uuid[], ${column((fee) => fee.vatId)}::uuid[]
) as u`;
}

export type FeeMovement = {
  readonly id: string;
  readonly kind: 'FEE' | 'FEE_REVERSAL' | 'FEE_VAT' | 'FEE_VAT_REVERSAL';
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  readonly merchantId: number;
};

/** Books commission and VAT (sql/015-booking.sql). Returns the declined movements with their outcomes. */
export function bookFees(movements: readonly FeeMovement[], stamp: Date): Sql {
  const column = (of: (movement: FeeMovement) => string | number | bigint) => plainArray(movements.map(of));
  return sql`
select b.id, b.outcome from (
  select u.id, book(u.kind, u.id, u.debit, u.credit, u.amount, u.merchant, null, null, null, ${stamp})
    as outcome
  from unnest(
    ${column((each) => each.id)}::uuid[], ${column((each) => each.kind)}::entry_kind[],
    ${column((each) => each.debit)}::bigint[], ${column((each) => each.credit)}::bigint[],
    ${column((each) => each.amountMinor)}::bigint[], ${column((each) => each.merchantId)}::int[]
  ) as u (id, kind, debit, credit, amount, merchant)
  offset 0
) b where b.outcome <> 'ok'`;
}

/** The lines of settlements: sums of movements. */

/**
 * Sums the movements on a settlement account. An amount is positive if it increases the debt to the merchant.
 * Commission and VAT are listed by their product, and reversals of redemptions before the interval
 * separately.
 */
export function listLines(merchantId: number, currency: string, from: string, to: string): Sql {
  return sql`
with earlier as (
  select product_id, rows, amount_minor from book_reversals
  where day between ${from}::date and ${to}::date and original_day < ${from}::date
    and merchant_id = ${merchantId} and currency = ${currency}
)
select product_id, kind::text, is_earlier, sum(rows)::bigint as rows,
  sum(amount_minor)::bigint as amount_minor
from (
  select product_id, 'REDEMPTION_REVERSAL'::entry_kind as kind, true as is_earlier, rows,
    -amount_minor as amount_minor
  from earlier
  union all
  select product_id, 'REDEMPTION_REVERSAL', false, -rows, amount_minor from earlier
  union all
  select product_id, kind, false, rows,
    case when credit_kind = 'SETTLEMENT' then amount_minor else -amount_minor end as amount_minor
  from book_movements
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
    and 'SETTLEMENT' in (debit_kind, credit_kind)
    and kind not in ('FEE', 'FEE_REVERSAL', 'FEE_VAT', 'FEE_VAT_REVERSAL')
  union all
  select product_id, kind, false, 1,
    case when credit_kind = 'SETTLEMENT' then amount_minor else -amount_minor end
  from fee_movements
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
) l
group by product_id, kind, is_earlier having sum(rows) > 0 order by product_id, kind, is_earlier`;
}

export function deleteLines(settlementId: number): Sql {
  return sql`delete from settlement_lines where settlement_id = ${settlementId}`;
}

export type RateRow = {
  commission_ppm: number;
  vat_ppm: number;
  net_minor: bigint;
  fee_minor: bigint;
  vat_minor: bigint;
};

/** Sums the commission of a merchant on an interval of closed days, by rate. */
export function sumFees(merchantId: number, currency: string, from: string, to: string): Sql {
  return sql`
select commission_ppm, vat_ppm, sum(net_minor)::bigint as net_minor, sum(fee_minor)::bigint as fee_minor,
  sum(vat_minor)::bigint as vat_minor
from settlement_fees
where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
group by 1, 2 order by 1, 2`;
}

export type LineRow = {
  product_id: number;
  kind: string;
  is_earlier: boolean;
  rows: bigint;
  amount_minor: bigint;
};

export function insertLine(settlementId: number, line: LineRow): Sql {
  return sql`
insert into settlement_lines (settlement_id, product_id, kind, is_earlier, rows, amount_minor)
values (${settlementId}, ${line.product_id}, ${line.kind}::entry_kind, ${line.is_earlier}, ${line.rows},
  ${line.amount_minor})`;
}

export function listStoredLines(settlementId: number): Sql {
  return sql`
select l.product_id, p.code as product, p.name, l.kind::text, l.is_earlier, l.rows, l.amount_minor
from settlement_lines l left join products p on p.id = l.product_id
where l.settlement_id = ${settlementId} order by l.product_id, l.kind, l.is_earlier`;
}
