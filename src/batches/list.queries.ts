import { type Sql, sql } from '../db/sql.ts';

export type BatchFilter = { readonly merchantId: number | null; readonly status: string | null };

/** A page of batches, newest first, before an id; each filter has an index (sql/020-operator.sql). */
export function listBatchRows(
  { merchantId, status }: BatchFilter,
  before: number | null,
  limit: number,
): Sql {
  const values: unknown[] = [before, limit];
  const conditions = ['($1::int is null or id < $1)'];
  if (merchantId !== null) conditions.push(`merchant_id = $${values.push(merchantId)}`);
  if (status !== null) conditions.push(`status = $${values.push(status)}::batch_status`);
  return {
    text: `select * from batches where ${conditions.join(' and ')} order by id desc limit $2`,
    values,
  };
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
