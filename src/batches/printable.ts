import type { Service } from '../context.ts';
import type { Caller } from '../operation.ts';
import { notFound, Problem } from '../problem.ts';
import { requireDecimals } from '../schema.ts';
import { showVoucher } from '../vouchers/show.ts';
import { findBatchForOperator, findProgress } from './batch.ts';

/** What can be printed: batches, and the single card that replaced another. */

/**
 * The largest batch, which takes a core half a minute. Larger batches are for a printer, who lays out the
 * CSV.
 */
const VOUCHERS_MAX = 10_000;

/** Returns a batch with its progress. @throws Problem */
export async function requireBatch({ service }: Caller, transactionId: string) {
  const found = await findBatchForOperator(service, transactionId);
  if (!found) throw notFound(`batch ${transactionId}`);
  return found;
}

/** Returns a batch that can be printed here. @throws Problem */
export async function requirePrintable(caller: Caller, transactionId: string) {
  const found = await requireBatch(caller, transactionId);
  const { batch, details } = found;
  if (batch.status !== 'COMPLETED')
    throw new Problem('conflict', `the batch is ${batch.status}: only a completed batch can be printed`);
  if (details.open === 0) throw new Problem('conflict', 'the batch has no vouchers left');
  if (details.open > VOUCHERS_MAX)
    throw new Problem(
      'conflict',
      `sheets hold up to ${VOUCHERS_MAX} vouchers: an operator exports a larger batch on the machine`,
    );
  return found;
}

/** Finds the voucher that replaced another, with its batch. @throws Problem `conflict`; Refusal `14` */
export async function findReplacement(service: Service, replaced: bigint) {
  const { replacedBy, batch: transactionId, product } = await showVoucher(service, replaced);
  if (replacedBy === null)
    throw new Problem('conflict', `voucher ${replaced} was not replaced: name the one that was replaced`);
  const {
    replacedBy: later,
    currency,
    balance: minor,
    state,
  } = await showVoucher(service, BigInt(replacedBy));
  if (later !== null)
    throw new Problem(
      'conflict',
      `voucher ${replacedBy}, which replaced it, was replaced too: name voucher ${replacedBy}`,
    );
  const found = await findProgress(service.db, transactionId);
  if (!found) throw notFound(`batch ${transactionId}`);
  const balance = { minor, decimals: requireDecimals(currency) };
  return { serialNumber: BigInt(replacedBy), batch: found.batch, product, balance, state };
}
