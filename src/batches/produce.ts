import type { Service } from '../context.ts';
import { holdKeyRing } from '../db/key-ring.ts';
import type { Queries, Transaction } from '../db/pool.ts';
import { bytesArray, plainArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { type KeyRing, randomCode, randomPin } from '../secrets.ts';
import { announceEnd } from './announce-end.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { advanceBatch, copyEntries, copyVouchers, findCodeKeys, insertVouchers, reserveSerials } from './queries.ts';
import { makeRowsAside } from './rows.aside.ts';
import { firstRows, type MadeRows } from './rows.ts';

/**
 * Makes `count` vouchers of a batch and books the progress, within the caller's transaction. The caller holds the batch's
 * row, so two that work on the same batch take turns.
 */
export async function produce(service: Service, tx: Queries, batch: Batch, count: number): Promise<Batch> {
  const now = service.clock();
  await holdKeyRing(tx, service.keys);
  let missing = count;
  // A code that exists already, one in some hundred thousand at most, is drawn again.
  while (missing > 0) missing -= await insert(service, tx, batch, missing, now);
  return advance(tx, batch, count, now);
}

/** Makes vouchers of a batch ahead of their transaction, while the database is busy with others. Serial numbers stay gone. */
export async function prepare({ db, keys, clock }: Service, batch: Batch, count: number): Promise<MadeRows> {
  const serials = await takeSerials(db, count);
  const { value, reserveAccount, currency, merchantId, acceptedAt } = batch;
  const activation =
    batch.immediate && value && reserveAccount !== null
      ? { amountMinor: value.minor, currency, merchantId, reserveAccount, at: acceptedAt }
      : null;
  return makeRowsAside(keys, { serials, batchId: batch.id, expiresAt: batch.expiresAt, now: clock(), activation });
}

/**
 * Writes vouchers that were made ahead, within the caller's transaction, which holds the key ring; `advance` books them. COPY knows
 * no `on conflict`: a code that exists already fails the transaction.
 */
export async function write(tx: Transaction, { count, vouchers, entries }: MadeRows): Promise<void> {
  await tx.copyIn(copyVouchers, firstRows(vouchers, count));
  if (entries) await tx.copyIn(copyEntries, firstRows(entries, count));
}

/** Books the progress of a batch, whose row the caller's transaction holds; the last voucher completes it. */
export async function advance(tx: Queries, batch: Batch, count: number, now: Date): Promise<Batch> {
  const [row] = await tx.query<BatchRow>(advanceBatch(batch.id, count, now));
  const after = toBatch(row as BatchRow);
  if (after.status === 'COMPLETED') await announceEnd(tx, after, now);
  return after;
}

async function takeSerials(tx: Queries, count: number): Promise<bigint[]> {
  const [reserved] = await tx.query<{ serials: string[] }>(reserveSerials(count));
  return (reserved?.serials ?? []).map(BigInt);
}

/**
 * Draws codes that no voucher has under a key before the newest one. Under the newest the unique index tells; a voucher that is
 * sealed anew between the two is found by one of them, as it moves in one direction only.
 */
async function drawCodes(tx: Queries, keys: KeyRing, count: number): Promise<Set<string>> {
  const codes = new Set<string>();
  while (codes.size < count) codes.add(randomCode());
  if (keys.inUse.length === 1) return codes;
  const byKey = new Map([...codes].flatMap((code) => keys.olderCodeKeys(code).map((key) => [key, code] as const)));
  const taken = await tx.query<{ code_key: string }>(findCodeKeys(plainArray([...byKey.keys()])));
  for (const { code_key } of taken) codes.delete(byKey.get(code_key.replaceAll('-', '')) ?? '');
  return codes;
}

async function insert(service: Service, tx: Queries, batch: Batch, count: number, now: Date): Promise<number> {
  const { keys } = service;
  const serials = await takeSerials(tx, count);
  const codes = await drawCodes(tx, keys, count);
  const codeKeys: string[] = [];
  const pinKeys: string[] = [];
  const sealed: Buffer[] = [];
  for (const code of codes) {
    const pin = randomPin();
    sealed.push(keys.seal(serials[sealed.length] as bigint, code, pin));
    codeKeys.push(keys.codeKey(code));
    pinKeys.push(keys.pinKey(code, pin));
  }
  const [result] = await tx.query<{ made: number }>(
    insertVouchers(batch, {
      serials: plainArray(serials.slice(0, sealed.length)),
      codeKeys: plainArray(codeKeys),
      pinKeys: plainArray(pinKeys),
      sealed: bytesArray(sealed),
      entryIds: plainArray(sealed.map(() => newId(now))),
    }),
  );
  return result?.made ?? 0;
}
