import { type Sql, sql } from '../db/sql.ts';

export function findProduct(code: string | undefined, defaultId: number): Sql {
  return sql`
select p.id, p.currency, p.decimals, p.activation, p.scope, p.min_value_minor, p.max_value_minor, p.max_quantity,
  p.validity_days, p.expiry_policy, p.on_sale, p.merchant_id
from products p where case when ${code ?? null}::text is null then p.id = ${defaultId} else p.code = ${code ?? null} end`;
}

/** By the merchant and the reference, which the batch keeps beside its claim. */
export function findBatchByReference(merchantId: number, reference: string): Sql {
  return sql`select * from batches where merchant_id = ${merchantId} and reference = ${reference}`;
}

export function findBatchByTransactionId(transactionId: string): Sql {
  return sql`select * from batches where transaction_id = ${transactionId}`;
}

export function findBatchById(id: number): Sql {
  return sql`select * from batches where id = ${id}`;
}

export function lockBatch(id: number): Sql {
  return sql`select * from batches where id = ${id} for update`;
}

export function lockBatchByTransactionId(transactionId: string): Sql {
  return sql`select * from batches where transaction_id = ${transactionId} for update`;
}

export type NewBatch = {
  readonly transactionId: string;
  readonly merchantId: number;
  readonly reference: string;
  readonly productId: number;
  readonly quantity: number;
  readonly valueMinor: bigint | null;
  readonly expiresAt: Date;
  readonly currency: string;
  readonly decimals: number;
  readonly activation: string;
  readonly scope: string;
  readonly expiryPolicy: string;
  readonly now: Date;
};

export function insertBatch(batch: NewBatch): Sql {
  return sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, value_minor, expires_at, currency, decimals,
  activation, scope, expiry_policy, accepted_at, progressed_at)
values (${batch.transactionId}, ${batch.merchantId}, ${batch.reference}, ${batch.productId}, ${batch.quantity},
  ${batch.valueMinor}, ${batch.expiresAt}, ${batch.currency}, ${batch.decimals}, ${batch.activation}::product_activation,
  ${batch.scope}::product_scope, ${batch.expiryPolicy}::expiry_policy, ${batch.now}, now())
returning *`;
}

/** Moves the price of a batch from the float to its reserve; `done` is false where the float does not cover it. */
export function reservePrice(batchId: number, entryId: string, lowId: string, now: Date): Sql {
  return sql`select reserve_price(${batchId}, ${entryId}, ${lowId}, ${now}) as done`;
}

/** Which of these keys of codes are taken. */
export function findCodeKeys(codeKeys: string): Sql {
  return sql`select code_key from vouchers where code_key = any (${codeKeys}::uuid[])`;
}

/** Draws numbers for vouchers: ascending, each once. */
export function drawNumbers(count: number): Sql {
  return sql`select array_agg(nextval('voucher_numbers')::text) as numbers from generate_series(1, ${count}::int)`;
}

/** A few vouchers of a batch (sql/012-vouchers.sql). A code that exists is left out; the number that was made is returned. */
export function createVouchers(
  batchId: number,
  columns: {
    buckets: string;
    serials: string;
    codeKeys: string;
    pinKeys: string;
    sealed: string;
    entryIds: string;
    now: Date;
  },
): Sql {
  const { buckets, serials, codeKeys, pinKeys, sealed, entryIds, now } = columns;
  return sql`
select create_vouchers(${batchId}, ${buckets}::int[], ${serials}::bigint[], ${codeKeys}::uuid[], ${pinKeys}::uuid[],
  ${sealed}::bytea[], ${entryIds}::uuid[], ${now}) as made`;
}

/** Fails where the stamp of rows that are copied is too old for the books (sql/005-rules.sql). */
export function checkStamp(at: Date): Sql {
  return sql`select check_stamp(${at})`;
}

/** Works as the role that may copy rows into vouchers and journal, until the transaction ends. */
export const becomeProducer = sql`set local role scrip_producer`;
export const becomeService = sql`set local role scrip_service`;

/** Rows in the binary format, made by rows.ts: the order of the columns is the order of its fields. */
export const copyVouchers = sql`
copy vouchers (serial_number, batch_id, bucket, code_key, pin_key, sealed, expires_at, value_minor, balance_minor, activated_at)
from stdin (format binary)`;

export const copyEntries = sql`
copy journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, batch_id, bucket, occurred_at)
from stdin (format binary)`;

/** Books progress in the transaction that made it; the last voucher completes the batch. */
export function advanceBatch(id: number, made: number, now: Date): Sql {
  return sql`
update batches set produced = produced + ${made}, progressed_at = now(), failures = 0, failing_since = null,
  status = case when produced + ${made} = quantity then 'COMPLETED' else status end,
  ended_at = case when produced + ${made} = quantity then ${now}::timestamptz end
where id = ${id}
returning *`;
}

export function cancelBatchRow(id: number, now: Date, failure: string | null): Sql {
  return sql`
update batches set status = 'CANCELED', ended_at = ${now}, failure = ${failure} where id = ${id} returning *`;
}

/** A page of a batch's vouchers behind a serial number. */
export function listVouchers(batchId: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed from vouchers
where batch_id = ${batchId} and serial_number > ${after} and closed is null
order by serial_number limit ${count}`;
}

/** Takes back vouchers of a canceled batch in one bucket, one for each id, behind a serial number (sql/012-vouchers.sql). */
export function voidVouchers(
  bucket: number,
  batchId: number,
  after: bigint,
  entryIds: string,
  now: Date,
): Sql {
  return sql`select * from void_vouchers(${bucket}, ${batchId}, ${after}, ${entryIds}::uuid[], ${now})`;
}

export function setVoided(id: number, now: Date): Sql {
  return sql`update batches set voided_at = ${now} where id = ${id} and voided_at is null`;
}

/** Counts a failure of a batch that is still being produced. */
export function countFailure(id: number, more: number, now: Date): Sql {
  return sql`
update batches set failures = least(failures + ${more}::int, 32767), failing_since = coalesce(failing_since, ${now})
where id = ${id} and status = 'PROCESSING' returning transaction_id, failures, failing_since`;
}

/** Batches without progress for a while, to be produced or taken back: their worker is gone. */
export function listStalled(quietSeconds: number): Sql {
  return sql`
(select id, 'fill-batch' as task from batches
  where status = 'PROCESSING' and progressed_at < now() - make_interval(secs => ${quietSeconds})
  order by progressed_at limit 1000)
union all
(select id, 'void-batch' from batches
  where status = 'CANCELED' and voided_at is null and ended_at < now() - make_interval(secs => ${quietSeconds})
  order by ended_at limit 1000)`;
}
