import { plainArray, type Sql, sql } from '../db/sql.ts';

export type NetRow = {
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
 * What each merchant redeemed on a day, less what was reversed, by product, with the terms of the day:
 * those of the product, else those of the merchant, and the accounts to book on. Merchants without terms
 * are left out. Sealed slices are read from their sums, the rest of the day from the journal.
 */
export function listNets(day: string, startsAt: Date, endsAt: Date): Sql {
  return sql`
with sealed as (
  select greatest(coalesce(sealed_until, ${startsAt}::timestamptz), ${startsAt}::timestamptz) as until
    from books
), moved as (
  select s.merchant_id, s.product_id, s.currency, s.kind, s.amount_minor
  from book_slices s, sealed
  where s.starts_at >= ${startsAt} and s.starts_at < least(${endsAt}::timestamptz, sealed.until)
    and s.kind in ('REDEMPTION', 'REDEMPTION_REVERSAL')
  union all
  select j.merchant_id, b.product_id, j.currency, j.kind, j.amount_minor
  from sealed
  join journal j on j.id >= id_floor(sealed.until - interval '1 hour')
    and j.id < id_floor(${endsAt}::timestamptz + interval '1 hour')
    and j.occurred_at >= sealed.until and j.occurred_at < ${endsAt}
      and j.kind in ('REDEMPTION', 'REDEMPTION_REVERSAL')
  join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
  join batches b on b.id = v.batch_id
)
select n.*, t.commission_ppm, t.vat_ppm, s.id as settlement_account, f.id as fees_account,
  v.id as vat_account
from (
  select merchant_id, product_id, currency,
    sum(case kind when 'REDEMPTION' then amount_minor else -amount_minor end)::bigint as net_minor
  from moved group by merchant_id, product_id, currency
) n
cross join lateral (
  select r.commission_ppm, r.vat_ppm from settlement_terms r
  where r.merchant_id = n.merchant_id and r.product_id in (0, n.product_id) and r.valid_from <= ${day}::date
  order by r.product_id = 0, r.valid_from desc limit 1
) t
left join accounts s on s.kind = 'SETTLEMENT' and s.merchant_id = n.merchant_id and s.currency = n.currency
left join accounts f on f.kind = 'FEES' and f.merchant_id = 0 and f.currency = n.currency
left join accounts v on v.kind = 'VAT' and v.merchant_id = 0 and v.currency = n.currency
order by n.merchant_id, n.product_id, n.currency`;
}

/** The ids of the commission of a day. */
export function listFees(day: string): Sql {
  return sql`select fee_id, vat_id from settlement_fees where day = ${day}::date`;
}

export function countRows(ids: readonly string[]): Sql {
  return sql`select count(*) as rows from journal where id = any (${plainArray(ids)}::uuid[])`;
}

export type NewFee = {
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

/** Notes what the commission of a day was computed from. */
export function insertFees(day: string, fees: readonly NewFee[]): Sql {
  const column = (of: (fee: NewFee) => string | number | bigint | null) => plainArray(fees.map(of));
  return sql`
insert into settlement_fees (day, merchant_id, product_id, currency, net_minor, commission_ppm, vat_ppm,
  fee_minor, vat_minor, fee_id, vat_id)
select ${day}::date, u.* from unnest(
  ${column((fee) => fee.merchantId)}::int[], ${column((fee) => fee.productId)}::int[],
  ${column((fee) => fee.currency)}::text[], ${column((fee) => fee.netMinor)}::bigint[],
  ${column((fee) => fee.commissionPpm)}::int[], ${column((fee) => fee.vatPpm)}::int[],
  ${column((fee) => fee.feeMinor)}::bigint[], ${column((fee) => fee.vatMinor)}::bigint[],
  ${column((fee) => fee.feeId)}::uuid[], ${column((fee) => fee.vatId)}::uuid[]) as u`;
}

export type FeeMovement = {
  readonly id: string;
  readonly kind: 'FEE' | 'FEE_REVERSAL' | 'FEE_VAT' | 'FEE_VAT_REVERSAL';
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  readonly merchantId: number;
};

/** Books commission and VAT (sql/015-booking.sql). Out: what was declined, and why. */
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
