import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { insertDeliveries } from './queries.ts';

/**
 * What merchants are told of (docs/how-to/receive-webhooks.md). An endpoint takes a list of these, or all.
 */
export const EVENTS = [
  'voucher.batch.completed',
  'voucher.batch.canceled',
  'voucher.activated',
  'voucher.redeemed',
  'redemption.updated',
  'float.low',
  'settlement.approved',
  'settlement.paid',
  'settlement.returned',
] as const;

export type EventType = (typeof EVENTS)[number];

/** What the operator sends to see whether an endpoint answers. */
export const TEST_EVENT = 'webhook.test';

export type OutboxEvent = {
  readonly merchantId: number;
  readonly type: EventType;
  /** Time-ordered and unique: what receivers know repeats by. */
  readonly eventId: string;
  /** The journal row or batch that it tells of. */
  readonly subjectId: string | null;
  /** What is told, where it is fixed now. Never a full code or a PIN. */
  readonly data: object | null;
  readonly now: Date;
};

/**
 * Puts an event into the queue of each of the merchant's endpoints that takes it, in the transaction of
 * its cause: both are there, or neither. Statements of the hot path do the same by themselves
 * (docs/how-to/receive-webhooks.md, "When it is sent").
 */
export async function enqueueEvent(
  { buckets }: Service,
  tx: Queries,
  announcement: OutboxEvent,
): Promise<void> {
  await tx.query(insertDeliveries(buckets.ofMerchant(announcement.merchantId), announcement));
}
