import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { announce } from '../webhooks/announce.ts';
import { type Batch, batchData } from './batch.ts';

/** Tells the merchant that a batch is `COMPLETED` or `CANCELED`, in the transaction that made it so. */
export async function announceEnd(service: Service, tx: Queries, batch: Batch, now: Date): Promise<void> {
  await announce(service, tx, {
    merchantId: batch.merchantId,
    type: batch.status === 'COMPLETED' ? 'voucher.batch.completed' : 'voucher.batch.canceled',
    eventId: newId(now),
    subjectId: batch.transactionId,
    data: { ...batchData(batch), quantity: batch.quantity },
    now,
  });
}
