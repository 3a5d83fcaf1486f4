import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { type Money, toNumber } from '../money.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';

/** A batch of vouchers (docs/reference/interface.md, "Voucher batch"). */
export type Batch = {
  readonly id: number;
  readonly transactionId: string;
  readonly merchantId: number;
  readonly reference: string;
  readonly status: 'PROCESSING' | 'COMPLETED' | 'CANCELED';
  readonly quantity: number;
  /** How many of them exist now. */
  readonly produced: number;
  /** The value of each voucher; null if it is given at activation. */
  readonly value: Money | null;
  readonly currency: string;
  readonly expiresAt: Date;
  readonly acceptedAt: Date;
  /** Whether its vouchers are active from the start, paid from its reserve. */
  readonly immediate: boolean;
};

export type BatchRow = {
  id: number;
  transaction_id: string;
  merchant_id: number;
  reference: string;
  status: Batch['status'];
  quantity: number;
  produced: number;
  value_minor: bigint | null;
  decimals: number;
  currency: string;
  expires_at: Date;
  accepted_at: Date;
  activation: 'immediate' | 'on-activation';
};

export function toBatch(row: BatchRow): Batch {
  return {
    id: row.id,
    transactionId: row.transaction_id,
    merchantId: row.merchant_id,
    reference: row.reference,
    status: row.status,
    quantity: row.quantity,
    produced: row.produced,
    value: row.value_minor === null ? null : { minor: row.value_minor, decimals: row.decimals },
    currency: row.currency,
    expiresAt: row.expires_at,
    acceptedAt: row.accepted_at,
    immediate: row.activation === 'immediate' && row.value_minor !== null,
  };
}

/**
 * A batch as answers and webhooks show it, without its vouchers (docs/reference/interface.md, "Voucher
 * batch").
 */
export function batchData({ reference, transactionId, status, expiresAt, value }: Batch) {
  return {
    reference,
    transactionId,
    status,
    expiryDate: expiresAt.toISOString(),
    value: value && toNumber(value),
  };
}

/**
 * Adds the event that a batch is `COMPLETED` or `CANCELED` to the outbox, in the transaction that made
 * it so.
 */
export async function enqueueBatchEvent(tx: Queries, batch: Batch, now: Date): Promise<void> {
  await enqueueEvent(tx, {
    merchantId: batch.merchantId,
    type: batch.status === 'COMPLETED' ? 'voucher.batch.completed' : 'voucher.batch.canceled',
    eventId: newId(now),
    subjectId: batch.transactionId,
    data: { ...batchData(batch), quantity: batch.quantity },
    now,
  });
}
