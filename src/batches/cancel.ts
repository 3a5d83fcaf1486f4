import { audit, canAudit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { retrying } from '../db/retry.ts';
import { plainArray } from '../db/sql.ts';
import { enqueue } from '../jobs/enqueue.ts';
import { newId } from '../ledger/id.ts';
import { announceEnd } from './announce-end.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import {
  cancelBatchRow,
  creditFloat,
  insertBatchEntry,
  lockBatch,
  lockBatchByTransactionId,
  voidVouchers,
} from './queries.ts';

/** Vouchers taken back in one transaction. */
const CHUNK = 5_000;

/**
 * Cancels a batch that is being produced: from this transaction on none of its vouchers can be seen or spent, and the
 * whole float is back. The vouchers made so far are taken back in the background.
 * @param failure why, where something else than the operator's word ended it
 * @returns the batch as it is now, canceled only if it was still `PROCESSING`; undefined for an unknown transaction id
 */
export async function cancelBatch(
  operator: Operator,
  transactionId: string,
  failure: string | null = null,
): Promise<Batch | undefined> {
  const { service } = operator;
  const now = service.clock();
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const [row] = await tx.query<BatchRow>(lockBatchByTransactionId(transactionId));
      if (!row) return undefined;
      const batch = toBatch(row);
      if (batch.status !== 'PROCESSING') return batch;
      if (batch.value && batch.reserveAccount !== null) {
        const amountMinor = batch.value.minor * BigInt(batch.quantity);
        const [float] = await tx.query<{ id: bigint }>(creditFloat(batch.merchantId, batch.currency, amountMinor));
        const credit = float?.id as bigint;
        const entry = {
          id: newId(now),
          kind: 'RELEASE',
          debit: batch.reserveAccount,
          credit,
          amountMinor,
          now,
        } as const;
        await tx.query(insertBatchEntry(batch, entry));
      }
      const [canceled] = await tx.query<BatchRow>(cancelBatchRow(batch.id, now, failure));
      const after = toBatch(canceled as BatchRow);
      await enqueue(tx, 'void-batch', batch.id);
      await announceEnd(tx, after, now);
      const { status, produced, quantity } = batch;
      // The failure may be that of the key ring, without which nothing is sealed, the audit neither: the money goes back all the same.
      if (failure !== null && !(await canAudit(tx, service))) return after;
      await audit(tx, operator, {
        action: 'batch.cancel',
        subject: `batch ${transactionId}`,
        before: { status, produced, quantity },
        after: { status: after.status, failure },
      });
      return after;
    }),
  );
}

type Voided = { voided: number; last: bigint | null };

/** The job that takes back the vouchers of a canceled batch, a chunk in each transaction. */
export async function voidBatch(service: Service, batchId: number): Promise<void> {
  // Behind what is taken back already: looking through that again for each chunk would take the longer the more it is.
  let after = 0n;
  for (;;) {
    const { voided, last } = await retrying(() =>
      service.db.transaction(async (tx) => {
        const [row] = await tx.query<BatchRow>(lockBatch(batchId));
        if (row?.status !== 'CANCELED') return { voided: 0, last: null };
        const now = service.clock();
        const ids = Array.from({ length: CHUNK }, () => newId(now));
        const [result] = await tx.query<Voided>(voidVouchers(toBatch(row), after, plainArray(ids), CHUNK, now));
        return result ?? { voided: 0, last: null };
      }),
    );
    if (voided < CHUNK || last === null) return;
    after = last;
  }
}
