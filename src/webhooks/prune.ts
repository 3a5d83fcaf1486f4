import type { Service } from '../context.ts';
import { idFloor } from '../ledger/id.ts';
import { deleteAbandonedDeliveries, deleteOldAttempts, deleteOldDeliveries } from './prune.queries.ts';

const KEEP_DAYS = 90;
const DAY_MS = 86_400_000;
/** Rows deleted by one statement: a moment's work. */
const PART = 5_000;

/** Forgets attempts and finished deliveries that are older than 90 days, and what waits for endpoints that ended before. */
export async function prune({ db, clock }: Service): Promise<void> {
  const before = new Date(clock().getTime() - KEEP_DAYS * DAY_MS);
  // Event ids begin with their time, so the primary key finds the old ones.
  const floor = idFloor(before);
  for (const statement of [deleteOldAttempts, deleteOldDeliveries, deleteAbandonedDeliveries]) {
    for (let deleted = PART; deleted === PART; ) {
      const [row] = await db.query<{ deleted: number }>(statement(before, floor, PART));
      deleted = row?.deleted ?? 0;
    }
  }
}
