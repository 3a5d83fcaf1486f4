import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import type { EventType } from './events.ts';
import { insertDeliveries } from './queries.ts';

export type Announcement = {
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
 * Puts an event into the queue of each of the merchant's endpoints that takes it, in the transaction of its cause: both
 * are there, or neither. Statements of the hot path do the same by themselves (docs/webhooks.md, "When it is sent").
 */
export async function announce({ buckets }: Service, tx: Queries, announcement: Announcement): Promise<void> {
  await tx.query(insertDeliveries(buckets.ofMerchant(announcement.merchantId), announcement));
}
