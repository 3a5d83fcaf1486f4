import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { bytesArray, plainArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { randomCode, randomPin } from '../secrets.ts';
import { announceEnd } from './announce-end.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { advanceBatch, insertVouchers, reserveSerials } from './queries.ts';

/**
 * Makes `count` vouchers of a batch and books the progress, within the caller's transaction. The caller holds the batch's
 * row, so two that work on the same batch take turns.
 */
export async function produce(service: Service, tx: Queries, batch: Batch, count: number): Promise<Batch> {
  const now = service.clock();
  let missing = count;
  // A code that exists already, one in some hundred thousand at most, is drawn again.
  while (missing > 0) missing -= await insert(service, tx, batch, missing, now);
  const [row] = await tx.query<BatchRow>(advanceBatch(batch.id, count, now));
  const after = toBatch(row as BatchRow);
  if (after.status === 'COMPLETED') await announceEnd(tx, after, now);
  return after;
}

async function insert(service: Service, tx: Queries, batch: Batch, count: number, now: Date): Promise<number> {
  const { keys } = service;
  const [reserved] = await tx.query<{ serials: string[] }>(reserveSerials(count));
  const codes = new Set<string>();
  while (codes.size < count) codes.add(randomCode());
  const serials = (reserved?.serials ?? []).map(BigInt);
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
