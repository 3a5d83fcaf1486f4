import type { Service } from '../context.ts';
import { randomCode, randomPin } from '../credentials.ts';
import { serialOf } from '../db/buckets.ts';
import type { Queries, Transaction } from '../db/pool.ts';
import { bytesArray, plainArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { reserveOf } from '../ledger/accounts.ts';
import { newId } from '../ledger/id.ts';
import { type Batch, type BatchRow, enqueueBatchEvent, toBatch } from './batch.ts';
import {
  advanceBatch,
  becomeProducer,
  becomeService,
  checkStamp,
  copyEntries,
  copyVouchers,
  createVouchers,
  drawNumbers,
  findCodeKeys,
} from './queries.ts';
import { firstRows, type MadeRows, withoutRows } from './rows.ts';
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
  return advance(service, tx, batch, count, now);
}

/** Prepares vouchers of a batch before their transaction. Unused numbers are lost. */
export async function prepare(
  { db, buckets, keys, clock }: Service,
  batch: Batch,
  count: number,
): Promise<MadeRows> {
  const numbers = await takeNumbers(db, count);
  const { id: batchId, expiresAt, value, currency, merchantId } = batch;
  const activation =
    batch.immediate && value
      ? { amountMinor: value.minor, currency, merchantId, reserveAccount: reserveOf(batchId) }
      : null;
  return makeRowsAside(keys, { numbers, buckets: buckets.all, batchId, expiresAt, now: clock(), activation });
}

/**
 * Removes vouchers with existing codes: COPY has no `on conflict`, and one of them would undo the whole
 * chunk.
 */
export async function withoutTaken(tx: Queries, made: MadeRows): Promise<MadeRows> {
  const taken = await tx.query<{ code_key: string }>(findCodeKeys(plainArray(made.codeKeys)));
  return withoutRows(made, new Set(taken.map(({ code_key }) => code_key.replaceAll('-', ''))));
}

/**
 * Writes prepared vouchers in the caller's transaction, which holds the key ring; `advance` books them.
 * An existing code fails the transaction.
 */
export async function write(tx: Transaction, { at, count, vouchers, entries }: MadeRows): Promise<void> {
  await tx.query(checkStamp(at));
  await tx.query(becomeProducer);
  await tx.copyIn(copyVouchers, firstRows(vouchers, count));
  if (entries) await tx.copyIn(copyEntries, firstRows(entries, count));
  await tx.query(becomeService);
}

/** Books the progress of a batch, whose row the caller's transaction holds; the last voucher completes it. */
export async function advance(
  service: Service,
  tx: Queries,
  batch: Batch,
  count: number,
  now: Date,
): Promise<Batch> {
  const [row] = await tx.query<BatchRow>(advanceBatch(batch.id, count, now));
  const after = toBatch(row as BatchRow);
  if (after.status === 'COMPLETED') await enqueueBatchEvent(service, tx, after, now);
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
async function drawCodes(tx: Queries, keys: KeyRing, count: number): Promise<Set<string>> {
  const codes = new Set<string>();
  while (codes.size < count) codes.add(randomCode());
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
  const vouchers = [...(await drawCodes(tx, keys, count))].map((code, index) => {
    const slot = keys.slotOf(code);
    const serial = serialOf(numbers[index] as bigint, slot);
    const pin = randomPin();
    return {
      bucket: buckets.ofSlot(slot),
      serial,
      codeKey: keys.codeKey(code),
      pinKey: keys.pinKey(code, pin),
      sealed: keys.seal(serial, code, pin),
    };
  });
  const [result] = await tx.query<{ made: number }>(
    createVouchers(batch.id, {
      buckets: plainArray(vouchers.map(({ bucket }) => bucket)),
      serials: plainArray(vouchers.map(({ serial }) => serial)),
      codeKeys: plainArray(vouchers.map(({ codeKey }) => codeKey)),
      pinKeys: plainArray(vouchers.map(({ pinKey }) => pinKey)),
      sealed: bytesArray(vouchers.map(({ sealed }) => sealed)),
      entryIds: plainArray(vouchers.map(() => newId(now))),
      now,
    }),
  );
  return result?.made ?? 0;
}
