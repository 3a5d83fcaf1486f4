import { type HotStatement, type Sql, sql } from '../db/sql.ts';

/** The functions of sql/008-claims.sql. */
export const FIND_VOUCHERS: HotStatement = {
  name: 'find-vouchers',
  text: 'select * from find_vouchers($1, $2, $3)',
};

export const CLAIM: HotStatement = { name: 'claim', text: 'select * from claim($1, $2, $3, $4, $5, $6, $7)' };

export const VOID_TRANSACTION: HotStatement = {
  name: 'void-transaction',
  text: 'select void_transaction($1, $2, $3) as done',
};

export const REASSIGN_CLAIM: HotStatement = {
  name: 'reassign-claim',
  text: 'select reassign_claim($1, $2, $3, $4, $5, $6, $7, $8) as done',
};

/** A merchant's transaction without a reference, by its id: every shard is asked. */
export function findWithoutReference(merchantId: number, id: string): Sql {
  return sql`
select id, bucket from journal
where merchant_id = ${merchantId} and id = uuid_from(${id}) and kind in ('ACTIVATION', 'REDEMPTION')
  and reference is null and original_id is null and batch_id is null`;
}

export function claimOne(claim: {
  readonly bucket: number;
  readonly merchantId: number;
  readonly operation: string;
  readonly reference: string;
  readonly id: string;
  readonly fingerprint: string;
}): Sql {
  const { bucket, merchantId, operation, reference, id, fingerprint } = claim;
  return sql`
select * from claim(${bucket}, ${operation}::operation, array[${merchantId}::int],
  array[${reference}::text], array[${id}::uuid],
  array[null::bigint], array[${fingerprint}::text])`;
}
