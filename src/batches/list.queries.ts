import { type Sql, sql } from '../db/sql.ts';

export function listBatchRows(merchantId: number | null, most: number): Sql {
  return sql`
select * from batches where ${merchantId}::int is null or merchant_id = ${merchantId}::int order by id desc limit ${most}`;
}

export function findBatchRow(transactionId: string): Sql {
  return sql`select * from batches where transaction_id = ${transactionId}`;
}

/** What the operator is told of a batch beside what the merchant sees. */
export function findBatchDetails(id: number): Sql {
  return sql`
select p.code as product, b.failure, b.ended_at, b.decimals,
  count(v.serial_number) filter (where v.closed is null) as open,
  count(v.serial_number) filter (where v.activated_at is not null and v.closed is distinct from 'REPLACED') as activated,
  coalesce(sum(v.balance_minor), 0)::bigint as balance_minor
from batches b
join products p on p.id = b.product_id
left join vouchers v on v.batch_id = b.id
where b.id = ${id} group by p.code, b.id`;
}
