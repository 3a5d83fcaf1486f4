import type { Queries } from '../db/pool.ts';
import { announce } from './queries.ts';

/** The events (docs/reference/webhooks.md). An endpoint takes a list of these, or all. */
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

/** Sent by the operator to see whether an endpoint answers. */
export const TEST_EVENT = 'webhook.test';

export type OutboxEvent = {
  readonly merchantId: number;
  readonly type: EventType;
  /** Time-ordered and unique. Receivers recognize repetitions by it. */
  readonly eventId: string;
  /** The journal row or batch of the event. */
  readonly subjectId: string | null;
  /** The data, if it is fixed now. Never a full code or a PIN. */
  readonly data: object | null;
  readonly now: Date;
};

/**
 * Adds an event to the outbox: a delivery for each of the merchant's endpoints that takes it, in the
 * transaction of its cause. Functions of the hot path do the same in SQL.
 */
export async function enqueueEvent(tx: Queries, event: OutboxEvent): Promise<void> {
  await tx.query(announce(event));
}
