import type { Service } from '../context.ts';
import type { Caller } from '../operation.ts';
import { notFound, Problem } from '../problem.ts';
import { showVoucher } from '../vouchers/show.ts';
import { type BatchWithVouchers, findBatchOf, requireBatch } from './batch.ts';

/** What can be printed: batches, and the single card that replaced another. */

/**
 * The largest batch, which takes a core half a minute. Larger batches are for a printer, who lays out the
 * CSV.
 */
const VOUCHERS_MAX = 10_000;

/** Returns a batch that can be exported. @throws Problem */
export async function requireExportable(
  { readDb }: Service,
  transactionId: string,
): Promise<BatchWithVouchers> {
  const batch = await requireBatch(readDb, transactionId);
  const { status, open } = batch;
  if (status === 'PROCESSING')
    throw new Problem(
      'conflict',
      `batch ${transactionId} is PROCESSING: it can be exported once it is COMPLETED`,
    );
  if (status === 'CANCELED')
    throw new Problem('conflict', `batch ${transactionId} is CANCELED: none of its vouchers can be used`);
  if (open === 0) throw new Problem('conflict', `batch ${transactionId} has no vouchers left`);
  return batch;
}

/** Returns a batch that can be printed here. @throws Problem */
export async function requirePrintable({ service }: Caller, transactionId: string) {
  const batch = await requireExportable(service, transactionId);
  if (batch.open > VOUCHERS_MAX)
    throw new Problem(
      'conflict',
      `sheets hold up to ${VOUCHERS_MAX} vouchers: an operator exports a larger batch on the machine`,
    );
  return batch;
}

/** Finds the voucher that replaced another, with its batch. @throws Problem `conflict`; Refusal `14` */
export async function findReplacement(service: Service, replaced: bigint) {
  const { replacedBy, batch: transactionId, product } = await showVoucher(service, replaced);
  if (replacedBy === null)
    throw new Problem('conflict', `voucher ${replaced} was not replaced: name the one that was replaced`);
  const { replacedBy: later, balance, state } = await showVoucher(service, BigInt(replacedBy));
  if (later !== null)
    throw new Problem(
      'conflict',
      `voucher ${replacedBy}, which replaced it, was replaced too: name voucher ${replacedBy}`,
    );
  const batch = await findBatchOf(service.db, transactionId);
  if (!batch) throw notFound(`batch ${transactionId}`);
  return { serialNumber: BigInt(replacedBy), batch, product, balance, state };
}
