import { type Sql, sql } from '../db/sql.ts';

export type NewTerms = {
  readonly merchantId: number;
  /** 0: all products without terms of their own. */
  readonly productId: number;
  readonly validFrom: string;
  readonly commissionPpm: number;
  readonly vatPpm: number;
  readonly period: 'day' | 'week' | 'month' | null;
  /** In major units, as text. */
  readonly leastPayout: string | null;
  readonly delayDays: number | null;
  readonly payee: string | null;
  readonly payeeLast4: string | null;
  readonly by: string;
  readonly now: Date;
};

/** Returns nothing where there are terms from this day on already. */
export function insertTerms(terms: NewTerms): Sql {
  const { merchantId, productId, validFrom, commissionPpm, vatPpm, period, leastPayout, delayDays } = terms;
  return sql`
insert into settlement_terms (merchant_id, product_id, valid_from, commission_ppm, vat_ppm, period,
  least_payout, delay_days, payee,
  payee_last4, made_by, made_at)
values (${merchantId}, ${productId}, ${validFrom}::date, ${commissionPpm}, ${vatPpm},
  ${period}::settlement_period, ${leastPayout}::numeric,
  ${delayDays}, ${terms.payee}, ${terms.payeeLast4}, ${terms.by}, ${terms.now})
on conflict do nothing returning merchant_id`;
}

/** The last closed day, or null. Held until the transaction ends: no day is closed meanwhile. */
export const lockLastClosed = sql`
select (select max(day)::text from book_closings) as day from books for share`;

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
  made_by: string;
};

export function listTerms(merchantId: number): Sql {
  return sql`
select t.merchant_id, t.product_id, p.code as product, t.valid_from::text, t.commission_ppm, t.vat_ppm,
  t.period,
  trim_scale(t.least_payout)::text as least_payout, t.delay_days, t.payee, t.payee_last4, t.made_by
from settlement_terms t left join products p on p.id = t.product_id
where t.merchant_id = ${merchantId} order by t.product_id, t.valid_from limit 10000`;
}

/** The merchant's own terms (not those of a product) on a day. */
export function findMerchantTerms(merchantId: number, day: string): Sql {
  return sql`
select t.merchant_id, t.product_id, null as product, t.valid_from::text, t.commission_ppm, t.vat_ppm,
  t.period,
  trim_scale(t.least_payout)::text as least_payout, t.delay_days, t.payee, t.payee_last4, t.made_by
from settlement_terms t
where t.merchant_id = ${merchantId} and t.product_id = 0 and t.valid_from <= ${day}::date
order by t.valid_from desc limit 1`;
}
