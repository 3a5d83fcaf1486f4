import { type HotStatement, type Sql, sql } from '../db/sql.ts';

/** The longest list of transactions in the API. */
export const LIST_MAX = 50;

/** The functions of sql/011-transactions.sql. */
export const FIND_TRANSACTIONS: HotStatement = {
  name: 'find-transactions',
  text: 'select * from find_transactions($1, $2, $3)',
};

export const ACTIVE_TRANSACTIONS: HotStatement = {
  name: 'active-transactions',
  text: 'select * from active_transactions($1, $2)',
};

/**
 * Lists the newest transactions of a merchant, newest first, by their own index. It does not include
 * activations by batches: see listBatchActivations.
 */
export function listOwnTransactions(merchantId: number, inForce: boolean): Sql {
  const kinds = inForce ? `'ACTIVATION', 'REDEMPTION'` : `'ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL'`;
  // One query without a subquery: on several shards, each of them then joins its own newest rows.
  const text = `
select j.id, j.kind, j.amount_minor, j.occurred_at, j.reference, j.serial_number, j.original_id,
  u.original_id is not null as canceled, v.sealed, b.decimals
from journal j
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
left join redemption_updates u on u.bucket = j.bucket and u.original_id = j.id
where j.merchant_id = $1 and j.batch_id is null and j.kind in (${kinds})
  ${inForce ? 'and u.original_id is null' : ''}
order by j.id desc limit ${LIST_MAX}`;
  return { text, values: [merchantId] };
}

/** Lists a merchant's newest completed batches whose vouchers were active at once, newest first. */
export function listActivatedBatches(merchantId: number): Sql {
  return sql`
select id, reference, quantity from batches
where merchant_id = ${merchantId} and status = 'COMPLETED' and value_minor is not null
  and activation = 'immediate'
order by ended_at desc limit ${LIST_MAX}`;
}

const ACTIVATIONS = `
select j.id, j.kind, j.amount_minor, j.occurred_at, b.reference, j.serial_number, j.original_id,
  false as canceled, v.sealed, b.decimals`;

/** Lists the activations of all vouchers of small batches. */
export function listSmallBatchActivations(batchIds: readonly number[]): Sql {
  return {
    text: `${ACTIVATIONS}
from vouchers v
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
join batches b on b.id = v.batch_id
where v.batch_id = any ($1::int[])`,
    values: [batchIds],
  };
}

/** Lists the activations of a batch's newest vouchers, without reading a batch of millions. */
export function listLargeBatchActivations(batchId: number): Sql {
  return {
    text: `${ACTIVATIONS}
from (
  select serial_number, bucket, sealed, batch_id from vouchers
  where batch_id = $1 order by serial_number desc limit ${LIST_MAX}
) v
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
join batches b on b.id = v.batch_id`,
    values: [batchId],
  };
}
