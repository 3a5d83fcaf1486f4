import { type Sql, sql } from '../db/sql.ts';

/** The lines of settlements: sums of movements. */

/**
 * Sums of the movements on a settlement account, positive where the merchant has more. Commission and
 * VAT: by the product that they are of. Reversals of redemptions before the interval: by themselves.
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
  select product_id, kind, false, rows, case when credit_kind = 'SETTLEMENT' then amount_minor
    else -amount_minor end as amount_minor
  from book_movements
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
    and 'SETTLEMENT' in (debit_kind, credit_kind) and kind not in ('FEE', 'FEE_REVERSAL', 'FEE_VAT',
      'FEE_VAT_REVERSAL')
  union all
  select product_id, case when fee_minor > 0 then 'FEE' else 'FEE_REVERSAL' end::entry_kind, false, 1,
    -fee_minor
  from settlement_fees
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
    and fee_minor <> 0
  union all
  select product_id, case when vat_minor > 0 then 'FEE_VAT' else 'FEE_VAT_REVERSAL' end::entry_kind, false,
    1, -vat_minor
  from settlement_fees
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
    and vat_minor <> 0
) l
group by product_id, kind, is_earlier having sum(rows) > 0 order by product_id, kind, is_earlier`;
}

export function deleteLines(settlementId: number): Sql {
  return sql`delete from settlement_lines where settlement_id = ${settlementId}`;
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
