import { bytesArray, plainArray, type Sql, sql, textArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';

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

/** Inserts an import. Returns no row if the reference is already used. */
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
 * Inserts a chunk. Returns a row if the chunk was not imported before. If another process is importing it, it
 * waits for that process.
 */
export function insertChunk(importId: number, chunk: number, vouchers: number): Sql {
  return sql`
insert into voucher_import_chunks (import_id, chunk, vouchers) values (${importId}, ${chunk}, ${vouchers})
on conflict do nothing returning chunk`;
}

/** Ends an import if all its chunks are imported, and then returns a row. */
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
 * Inserts a batch that is complete from the start, on the terms of its product. The batch has no value, since
 * each voucher has its own balance.
 */
export function insertImportedBatch(batch: NewImportedBatch): Sql {
  const { transactionId, merchantId, reference, productId, quantity, expiresAt, now } = batch;
  return sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced, expires_at,
  currency, decimals, activation, scope, expiry_policy, status, accepted_at, progressed_at, ended_at)
select ${transactionId}, ${merchantId}, ${reference}, p.id, ${quantity}, ${quantity}, ${expiresAt},
  p.currency, p.decimals, 'immediate', p.scope, p.expiry_policy, 'COMPLETED', ${now}, now(), ${now}
from products p where p.id = ${productId}
returning id`;
}

export type ImportedVoucher = {
  readonly bucket: number;
  readonly serial: bigint;
  readonly codeKey: string;
  readonly pinKey: string;
  readonly sealed: Buffer;
  readonly balanceMinor: bigint;
  readonly expiresAt: Date;
  readonly reference: string | null;
  readonly issuedAt: Date | null;
  readonly lastUsedAt: Date | null;
};

/** Inserts the vouchers of an imported batch, and the movements that pay for them (sql/016-imports.sql). */
export function importVouchers(
  importId: number,
  batchId: number,
  payer: bigint,
  vouchers: readonly ImportedVoucher[],
  now: Date,
): Sql {
  return sql`
select import_vouchers(
  ${importId},
  ${newId(now)},
  ${batchId},
  ${payer},
  ${plainArray(vouchers.map(({ bucket }) => bucket))}::int[],
  ${plainArray(vouchers.map(({ serial }) => serial))}::bigint[],
  ${plainArray(vouchers.map(({ codeKey }) => codeKey))}::uuid[],
  ${plainArray(vouchers.map(({ pinKey }) => pinKey))}::uuid[],
  ${bytesArray(vouchers.map(({ sealed }) => sealed))}::bytea[],
  ${plainArray(vouchers.map(({ balanceMinor }) => balanceMinor))}::bigint[],
  ${plainArray(vouchers.map(({ expiresAt }) => expiresAt.toISOString()))}::timestamptz[],
  ${plainArray(vouchers.map(() => newId(now)))}::uuid[],
  ${textArray(vouchers.map(({ reference }) => reference))}::text[],
  ${plainArray(vouchers.map(({ issuedAt }) => issuedAt?.toISOString() ?? null))}::timestamptz[],
  ${plainArray(vouchers.map(({ lastUsedAt }) => lastUsedAt?.toISOString() ?? null))}::timestamptz[],
  ${now})`;
}
