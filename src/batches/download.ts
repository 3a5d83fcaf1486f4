import type { Context, Service } from '../context.ts';
import type { CodeAndPin } from '../keyring/ring.ts';
import { checkLookupReference } from '../ledger/reference.ts';
import { permit } from '../merchants/permit.ts';
import { Refusal } from '../refusal.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { findBatchByReference, findBatchByTransactionId, listVouchers } from './queries.ts';

/**
 * A page is opened and written before the next one is read, so a download holds no more vouchers than
 * this. Opening them takes a millisecond, for which the calls at the till wait.
 */
const PAGE = 250;

/**
 * The merchant's batch of a reference. Its vouchers show codes and PINs, so it takes a permission.
 * @throws Refusal `18`, `03`, `60`
 */
export async function findBatch(context: Context, reference: string): Promise<Batch> {
  checkLookupReference(reference);
  permit(context, 'download', 'generate');
  const [row] = await context.service.db.query<BatchRow>(
    findBatchByReference(context.merchant.id, reference),
  );
  if (!row) throw new Refusal('60');
  return toBatch(row);
}

/**
 * The vouchers of a completed batch in the order of their serial numbers, a page at a time, read on
 * demand. No transaction and no connection is held in between.
 */
export async function* readVouchers(
  { db, keys }: Service,
  batch: Batch,
): AsyncGenerator<({ readonly serialNumber: bigint } & CodeAndPin)[]> {
  let after = 0n;
  for (;;) {
    const rows = await db.query<{ serial_number: bigint; sealed: Buffer }>(
      listVouchers(batch.id, after, PAGE),
    );
    if (rows.length > 0)
      yield rows.map((row) => ({
        serialNumber: row.serial_number,
        ...keys.open(row.serial_number, row.sealed),
      }));
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.serial_number ?? after;
  }
}

/**
 * All vouchers of a completed batch, in order; undefined if it has more than `most`, or does not exist.
 */
export async function readVouchersOf(service: Service, transactionId: string, most: number) {
  const [row] = await service.db.query<BatchRow>(findBatchByTransactionId(transactionId));
  if (row?.status !== 'COMPLETED' || row.quantity > most) return undefined;
  const vouchers = [];
  for await (const page of readVouchers(service, toBatch(row))) vouchers.push(...page);
  return vouchers;
}
