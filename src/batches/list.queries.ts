import { type Sql, sql } from '../db/sql.ts';

export function listBatchRows(merchantId: number | null, most: number): Sql {
  return sql`
select * from batches where ${merchantId}::int is null or merchant_id = ${merchantId}::int order by id desc limit ${most}`;
}

/** What the operator sees of a batch beside what the merchant sees. Reads all its vouchers. */
export function findBatchDetails(id: number): Sql {
  return sql`
select p.code as product, b.failure, b.ended_at, b.decimals, v.open, v.activated, v.balance_minor
from batches b
join products p on p.id = b.product_id
cross join (
  select count(*) filter (where closed is null) as open,
    count(*) filter (where activated_at is not null and closed is distinct from 'REPLACED') as activated,
    coalesce(sum(balance_minor), 0)::bigint as balance_minor
  from vouchers where batch_id = ${id}
) v
where b.id = ${id}`;
}

/** Five million vouchers take longer than a request may. */
export const allowLongDetails = sql`set local statement_timeout = '2min'`;
