import { type Sql, sql } from '../db/sql.ts';

export function findJournalRow(id: string): Sql {
  return sql`select * from show_transaction(${id}::uuid)`;
}

export type JournalFilter = {
  readonly merchantId: number | null;
  readonly serialNumber: bigint | null;
  /** Ids from here on, and before here. */
  readonly from: string;
  readonly before: string;
};

/** Newest first. Each filter is answered along an index: of the merchant, of the voucher, or of the ids. */
export function listJournalRows(
  { merchantId, serialNumber, from, before }: JournalFilter,
  limit: number,
): Sql {
  const values: unknown[] = [from, before, limit];
  const conditions = ['r.id >= $1::uuid', 'r.id < $2::uuid'];
  if (serialNumber !== null) conditions.push(`r.serial_number = $${values.push(serialNumber)}`);
  if (merchantId !== null) {
    conditions.push(`r.merchant_id = $${values.push(merchantId)}`);
    if (serialNumber === null)
      conditions.push(`r.batch_id is null and r.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL')`);
  }
  return {
    text: `
select j.id, j.kind, j.amount_minor, j.currency, j.occurred_at, j.merchant_id, j.reference, j.serial_number,
  v.sealed, j.original_id, u.original_id is not null as canceled
from (
  select * from journal r where ${conditions.join(' and ')} order by r.id desc limit $3
) j
left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
left join redemption_updates u on u.bucket = j.bucket and u.original_id = j.id
order by j.id desc`,
    values,
  };
}

/** The redemptions and activations of a merchant's reference, by its claims. */
export function findClaimedTransactions(merchantId: number, reference: string): Sql {
  return sql`
select id from claims
where merchant_id = ${merchantId} and reference = ${reference}
  and operation in ('redeem', 'activate', 'top-up')
order by case operation when 'redeem' then 1 when 'activate' then 2 else 3 end`;
}
