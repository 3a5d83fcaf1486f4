import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { type Batch, type BatchRow, enqueueBatchEvent, toBatch } from './batch.ts';
import { advanceBatch, createVouchers, drawNumbers, findCodeKeys } from './queries.ts';
import { drawCodes, type MadeRows, makeRows } from './rows.ts';
import { makeRowsAside } from './rows.worker.ts';

/**
 * Makes `count` vouchers of a batch and books the progress, in the caller's transaction. The caller
 * holds the batch's row, so two workers on one batch take turns.
 */
export async function produce(service: Service, tx: Queries, batch: Batch, count: number): Promise<Batch> {
  const now = service.clock();
  await holdKeyRing(tx, service.keys);
  // An existing code is skipped, and another one drawn.
  for (let missing = count; missing > 0; ) missing -= await create(service, tx, batch, missing, now);
  return advance(tx, batch, count, now);
}

/** Prepares vouchers of a batch before their transaction. Unused numbers are lost. */
export async function prepare({ db, buckets, keys, clock }: Service, count: number): Promise<MadeRows> {
  const numbers = await takeNumbers(db, count);
  return makeRowsAside(keys, { numbers, buckets: buckets.all, now: clock() });
}

/**
 * Writes prepared vouchers in the caller's transaction, which holds the key ring; `advance` books them.
 * @returns how many: a voucher whose code exists is left out
 */
export async function write(tx: Queries, batchId: number, rows: MadeRows): Promise<number> {
  const [result] = await tx.query<{ made: number }>(createVouchers(batchId, rows));
  return result?.made ?? 0;
}

/** Books the progress of a batch, whose row the caller's transaction holds; the last voucher completes it. */
export async function advance(tx: Queries, batch: Batch, count: number, now: Date): Promise<Batch> {
  const [row] = await tx.query<BatchRow>(advanceBatch(batch.id, count, now));
  const after = toBatch(row as BatchRow);
  if (after.status === 'COMPLETED') await enqueueBatchEvent(tx, after, now);
  return after;
}

async function takeNumbers(tx: Queries, count: number): Promise<bigint[]> {
  const [drawn] = await tx.query<{ numbers: string[] }>(drawNumbers(count));
  return (drawn?.numbers ?? []).map(BigInt);
}

/**
 * Draws codes that no voucher has under an older key. Under the newest key the unique index decides. A
 * voucher that is resealed between the two checks is found by one of them, since it moves in one
 * direction only.
 */
async function drawFreeCodes(tx: Queries, keys: KeyRing, count: number): Promise<Set<string>> {
  const codes = drawCodes(count);
  if (keys.inUse.length === 1) return codes;
  const byKey = new Map(
    [...codes].flatMap((code) => keys.olderCodeKeys(code).map((key) => [key, code] as const)),
  );
  const taken = await tx.query<{ code_key: string }>(findCodeKeys(plainArray([...byKey.keys()])));
  for (const { code_key } of taken) codes.delete(byKey.get(code_key.replaceAll('-', '')) ?? '');
  return codes;
}

async function create(
  { keys, buckets }: Service,
  tx: Queries,
  batch: Batch,
  count: number,
  now: Date,
): Promise<number> {
  const numbers = await takeNumbers(tx, count);
  const codes = [...(await drawFreeCodes(tx, keys, count))];
  return write(tx, batch.id, makeRows(keys, { numbers, codes, buckets: buckets.all, now }));
}
