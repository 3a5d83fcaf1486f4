import type { Service } from '../context.ts';
import type { Queries, Transaction } from '../db/pool.ts';
import { bytesArray, plainArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { randomCode, randomPin } from '../secrets.ts';
import { announceEnd } from './announce-end.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { advanceBatch, copyEntries, copyVouchers, insertVouchers, reserveSerials } from './queries.ts';
import { makeRowsAside } from './rows.aside.ts';
import { firstRows, type MadeRows } from './rows.ts';

/**
 * Makes `count` vouchers of a batch and books the progress, within the caller's transaction. The caller holds the batch's
 * row, so two that work on the same batch take turns.
 */
export async function produce(service: Service, tx: Queries, batch: Batch, count: number): Promise<Batch> {
  const now = service.clock();
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
 * Books vouchers that were made ahead, as many as the batch lacks, within the caller's transaction, as `produce` does. COPY knows
 * no `on conflict`: a code that exists already fails the transaction.
 */
export async function produceFrom(service: Service, tx: Transaction, batch: Batch, made: MadeRows): Promise<Batch> {
  const count = Math.min(made.count, batch.quantity - batch.produced);
  await tx.copyIn(copyVouchers, firstRows(made.vouchers, count));
  if (made.entries) await tx.copyIn(copyEntries, firstRows(made.entries, count));
  return advance(tx, batch, count, service.clock());
}

async function advance(tx: Queries, batch: Batch, count: number, now: Date): Promise<Batch> {
  const [row] = await tx.query<BatchRow>(advanceBatch(batch.id, count, now));
  const after = toBatch(row as BatchRow);
  if (after.status === 'COMPLETED') await announceEnd(tx, after, now);
  return after;
}

async function takeSerials(tx: Queries, count: number): Promise<bigint[]> {
  const [reserved] = await tx.query<{ serials: string[] }>(reserveSerials(count));
  return (reserved?.serials ?? []).map(BigInt);
}

async function insert(service: Service, tx: Queries, batch: Batch, count: number, now: Date): Promise<number> {
  const { keys } = service;
  const serials = await takeSerials(tx, count);
  const codes = new Set<string>();
  while (codes.size < count) codes.add(randomCode());
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
      serials: plainArray(serials),
      codeKeys: plainArray(codeKeys),
      pinKeys: plainArray(pinKeys),
      sealed: bytesArray(sealed),
      entryIds: plainArray(serials.map(() => newId(now))),
    }),
  );
  return result?.made ?? 0;
}
