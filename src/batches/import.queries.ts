import { type Sql, sql } from '../db/sql.ts';

export type ImportTableRow = {
  id: number;
  digest: Buffer;
  vouchers: number;
  chunks: number;
  started_at: Date;
  finished_at: Date | null;
};

export function findImport(merchantId: number, reference: string): Sql {
  return sql`
select id, digest, vouchers, chunks, started_at, finished_at from voucher_imports
where merchant_id = ${merchantId} and reference = ${reference}`;
}

export function listDoneChunks(importId: number): Sql {
  return sql`select chunk, vouchers from voucher_import_chunks where import_id = ${importId}`;
}

export type NewImport = {
  readonly merchantId: number;
  readonly reference: string;
  readonly digest: Buffer;
  readonly paidFrom: 'funding' | 'float';
  readonly vouchers: number;
  readonly chunks: number;
  readonly by: string;
  readonly now: Date;
};

/** Returns nothing where the reference is taken. */
export function insertImport({
  merchantId,
  reference,
  digest,
  paidFrom,
  vouchers,
  chunks,
  by,
  now,
}: NewImport): Sql {
  return sql`
insert into voucher_imports (merchant_id, reference, digest, paid_from, vouchers, chunks, imported_by,
  started_at)
values (${merchantId}, ${reference}, ${digest}, ${paidFrom}, ${vouchers}, ${chunks}, ${by}, ${now})
on conflict do nothing
returning id, digest, vouchers, chunks, started_at, finished_at`;
}

/**
 * Returns a row where the chunk was not imported before. Another process that imports it at this moment
 * is waited for.
 */
export function insertChunk(importId: number, chunk: number, vouchers: number): Sql {
  return sql`
insert into voucher_import_chunks (import_id, chunk, vouchers) values (${importId}, ${chunk}, ${vouchers})
on conflict do nothing returning chunk`;
}

/** Ends an import all of whose chunks are there; returns a row where that is so. */
export function finishImport(importId: number, now: Date): Sql {
  return sql`
update voucher_imports i set finished_at = ${now}
where i.id = ${importId} and i.finished_at is null
  and i.chunks = (select count(*) from voucher_import_chunks c where c.import_id = i.id)
returning i.id`;
}

export type NewImportedBatch = {
  readonly transactionId: string;
  readonly merchantId: number;
  readonly reference: string;
  readonly productId: number;
  readonly quantity: number;
  readonly expiresAt: Date;
  readonly now: Date;
};

/**
 * A batch that is complete from the start, on the terms of its product. It has no value of its own: each
 * voucher has its balance.
 */
export function insertImportedBatch(batch: NewImportedBatch): Sql {
  const { transactionId, merchantId, reference, productId, quantity, expiresAt, now } = batch;
  return sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced, expires_at,
  currency, decimals, activation,
  scope, expiry_policy, status, accepted_at, progressed_at, ended_at)
select ${transactionId}, ${merchantId}, ${reference}, p.id, ${quantity}, ${quantity}, ${expiresAt},
  p.currency, p.decimals, 'immediate',
  p.scope, p.expiry_policy, 'COMPLETED', ${now}, now(), ${now}
from products p where p.id = ${productId}
returning id`;
}

/** Refuses a clock that is wrong, and numbers the transaction (sql/005-rules.sql). */
export function checkStamp(now: Date): Sql {
  return sql`select check_stamp(${now})`;
}

/** Rows in the text format, made by import.ts: the order of the columns is the order of its fields. */
export const copyImportedVouchers = sql`
copy vouchers (serial_number, batch_id, bucket, code_key, pin_key, sealed,
  expires_at, value_minor, balance_minor, activated_at)
from stdin`;

export const copyImportedEntries = sql`
copy journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
  serial_number, bucket, occurred_at, reference)
from stdin`;
