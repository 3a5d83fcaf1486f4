import { type Sql, sql } from '../db/sql.ts';
import type { MadeRows } from './rows.ts';

/**
 * Finds a product by its code, or the default one. `default_expires_at` is the end of a day in the zone of
 * the books, as cards show it.
 */
export function findProduct(code: string | undefined, defaultId: number, now: Date): Sql {
  return sql`
select p.id, p.currency, p.decimals, p.activation, p.scope, p.min_value_minor, p.max_value_minor,
  p.max_quantity, p.expiry_policy, p.on_sale, p.merchant_id,
  ((((${now}::timestamptz + p.validity_days * interval '24 hours') at time zone k.zone)::date + 1)::timestamp
    at time zone k.zone) - interval '1 millisecond' as default_expires_at
from products p, books k
where case when ${code ?? null}::text is null then p.id = ${defaultId} else p.code = ${code ?? null} end`;
}

/** Finds a batch by merchant and reference. The batch stores the reference in addition to its claim. */
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
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, value_minor, expires_at,
  currency, decimals, activation, scope, expiry_policy, accepted_at, progressed_at)
values (${batch.transactionId}, ${batch.merchantId}, ${batch.reference}, ${batch.productId},
  ${batch.quantity}, ${batch.valueMinor}, ${batch.expiresAt}, ${batch.currency}, ${batch.decimals},
  ${batch.activation}::product_activation, ${batch.scope}::product_scope,
  ${batch.expiryPolicy}::expiry_policy, ${batch.now}, now())
returning *`;
}

/** Moves the price of a batch from the float to its reserve. `done` is false if the float is too low. */
export function reservePrice(batchId: number, entryId: string, lowId: string, now: Date): Sql {
  return sql`select reserve_batch(${batchId}, ${entryId}, ${lowId}, ${now}) as done`;
}

/** Moves the price of a batch that is being canceled from its reserve to the float. */
export function releasePrice(batchId: number, entryId: string, now: Date): Sql {
  return sql`select release_batch(${batchId}, ${entryId}, ${now})`;
}

/** Returns those of these code keys that exist already. */
export function findCodeKeys(codeKeys: string): Sql {
  return sql`select code_key from find_code_keys(${codeKeys}::uuid[])`;
}

/** Draws numbers for vouchers, ascending and unique. */
export function drawNumbers(count: number): Sql {
  return sql`
    select array_agg(nextval('voucher_numbers')::text) as numbers from generate_series(1, ${count}::int)`;
}

/**
 * Creates vouchers of a batch (sql/012-vouchers.sql). Existing codes are skipped. Returns the number of new
 * vouchers.
 */
export function createVouchers(batchId: number, rows: MadeRows): Sql {
  const { buckets, serials, codeKeys, pinKeys, sealed, entryIds, at } = rows;
  return sql`
select create_vouchers(${batchId}, ${buckets}::int[], ${serials}::bigint[], ${codeKeys}::uuid[],
  ${pinKeys}::uuid[], ${sealed}::bytea[], ${entryIds}::uuid[], ${at}) as made`;
}

/** Records progress in the transaction that made it. The last voucher completes the batch. */
export function advanceBatch(id: number, made: number, now: Date): Sql {
  return sql`
update batches set
  produced = produced + ${made}, progressed_at = now(), failures = 0, failing_since = null,
  status = case when produced + ${made} = quantity then 'COMPLETED' else status end,
  ended_at = case when produced + ${made} = quantity then ${now}::timestamptz end
where id = ${id}
returning *`;
}

export function cancelBatchRow(id: number, now: Date, failure: string | null): Sql {
  return sql`
update batches set status = 'CANCELED', ended_at = ${now}, failure = ${failure} where id = ${id} returning *`;
}

/** Lists a page of a batch's vouchers, after a serial number. */
export function listVouchers(batchId: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed from vouchers
where batch_id = ${batchId} and serial_number > ${after} and closed is null
order by serial_number limit ${count}`;
}

/**
 * Voids vouchers of a canceled batch in one bucket, after a serial number (sql/012-vouchers.sql): as many as
 * there are ids. `last` is null if none was left.
 */
export function voidVouchers(
  bucket: number,
  batchId: number,
  after: bigint,
  entryIds: string,
  now: Date,
): Sql {
  return sql`select void_vouchers(${bucket}, ${batchId}, ${after}, ${entryIds}::uuid[], ${now}) as last`;
}

export function setVoided(id: number, now: Date): Sql {
  return sql`update batches set voided_at = ${now} where id = ${id} and voided_at is null`;
}

/** Counts a failure of a batch that is still being produced. */
export function countFailure(id: number, more: number, now: Date): Sql {
  return sql`
update batches set
  failures = least(failures + ${more}::int, 32767), failing_since = coalesce(failing_since, ${now})
where id = ${id} and status = 'PROCESSING' returning transaction_id, failures, failing_since`;
}

export type BatchFilter = { readonly merchantId: number | null; readonly status: string | null };

/** Lists a page of batches, newest first, before an id. Each filter has an index (sql/019-operator.sql). */
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

/** Finds the details of a batch for the operator. It reads all its vouchers. */
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

/** Reading five million vouchers takes longer than a request may. */
export const allowLongDetails = sql`set local statement_timeout = '2min'`;

export type NewExport = {
  readonly format: 'csv' | 'pdf';
  /** The operator. */
  readonly by: string;
  readonly reason: string | null;
  /** The only voucher that is exported; null: the whole batch. */
  readonly serialNumber: bigint | null;
};

/** Records an export with the planned number of vouchers: one, or those of the completed batch. */
export function insertExport(batchId: number, wanted: NewExport, now: Date): Sql {
  const { format, by, reason, serialNumber } = wanted;
  return sql`
insert into batch_exports (batch_id, serial_number, format, exported_by, reason, vouchers, begun_at)
select id, ${serialNumber}, ${format}, ${by}, ${reason},
  case when ${serialNumber}::bigint is null then quantity else 1 end, ${now}
from batches where id = ${batchId}
returning id, vouchers`;
}

/** Counts the exports of this one voucher, also failed ones: its code may have been handed out. */
export function countVoucherExports(batchId: number, serialNumber: bigint): Sql {
  return sql`
select count(*)::int as exports from batch_exports
where batch_id = ${batchId} and serial_number = ${serialNumber}`;
}

export function insertExportEnd(exportId: number, complete: boolean, vouchers: number, now: Date): Sql {
  return sql`
insert into batch_export_ends (export_id, complete, vouchers, ended_at)
values (${exportId}, ${complete}, ${vouchers}, ${now})`;
}

export function listExportRows(batchId: number, most: number): Sql {
  return sql`
select e.id, e.serial_number, e.format, e.exported_by, e.reason, e.begun_at, n.ended_at, n.complete,
  coalesce(n.vouchers, e.vouchers) as vouchers
from batch_exports e left join batch_export_ends n on n.export_id = e.id
where e.batch_id = ${batchId} order by e.id desc limit ${most}`;
}

export function findLastExport(batchId: number): Sql {
  return sql`
select count(*)::int as exports, max(begun_at) as last from batch_exports
where batch_id = ${batchId} and serial_number is null`;
}

/**
 * Lists the data that is printed next to the codes of a page of vouchers. An inactive voucher has the value
 * of its batch. A voucher that expires at midnight is valid until the day before.
 */
export function listFaces(batchId: number, first: bigint, last: bigint, zone: string): Sql {
  return sql`
select v.serial_number, v.expires_at, b.decimals,
  ((v.expires_at - interval '1 millisecond') at time zone ${zone})::date::text as last_day,
  case when v.activated_at is null then b.value_minor else v.balance_minor end as value_minor
from vouchers v join batches b on b.id = v.batch_id
where v.batch_id = ${batchId} and v.serial_number between ${first} and ${last} and v.closed is null`;
}

/**
 * Inserts an order of sealed sheets.
 * @param order.card the voucher whose replacement is ordered, and the earlier exports of the replacement;
 *   null: the whole batch
 * @param order.language of what the cards say
 * @param order.salt of their passphrase
 */
export function insertSheets(order: {
  readonly batchId: number;
  readonly card: { readonly replaced: bigint; readonly exportsBefore: number } | null;
  readonly orderedBy: number;
  readonly name: string;
  readonly reason: string | null;
  readonly language: string;
  readonly salt: Buffer;
  readonly now: Date;
  readonly expiresAt: Date;
}): Sql {
  const { batchId, card, orderedBy, name, reason, language, salt, now, expiresAt } = order;
  return sql`
insert into batch_sheets
  (batch_id, replaced, exports_before, ordered_by, name, reason, language, salt, ordered_at, expires_at)
values (${batchId}, ${card?.replaced ?? null}, ${card?.exportsBefore ?? null}, ${orderedBy}, ${name},
  ${reason}, ${language}, ${salt}, ${now}, ${expiresAt})
returning id`;
}

/** Lists the newest sheets of a batch, or of the replacement of one of its vouchers. */
export function listSheets(batchId: number, replaced: bigint | null, limit: number): Sql {
  return sql`
select id, ordered_by, name, reason, language, ordered_at, expires_at from batch_sheets
where batch_id = ${batchId} and replaced is not distinct from ${replaced}::bigint
order by id desc limit ${limit}`;
}

export function findSheets(id: number): Sql {
  return sql`
select s.id, s.replaced, s.exports_before, s.ordered_by, s.name, s.reason, s.language, s.salt, s.ordered_at,
  s.expires_at, b.transaction_id
from batch_sheets s join batches b on b.id = s.batch_id where s.id = ${id}`;
}
