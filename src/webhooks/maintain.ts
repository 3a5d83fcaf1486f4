import { isSharded, type Service } from '../context.ts';
import { resolveOldHolds } from '../ledger/holds.ts';
import { createPartitions, dropOldDeliveries, failPending, listAbandoned } from './queries.ts';

const DAY_MS = 86_400_000;
/** How long an attempt is kept. */
const KEEP_DAYS = 90;
/** Partitions exist this far ahead: a service that is off for less misses none. */
const AHEAD_DAYS = 365;
/** Deliveries that one statement ends. */
const PART = 5_000;

/** Periodic maintenance of the partitions of journal and webhooks. Any number of processes may run it. */
export async function maintain(service: Service): Promise<void> {
  const { db, log, clock } = service;
  const now = clock().getTime();
  await db.query(createPartitions(new Date(now), new Date(now + AHEAD_DAYS * DAY_MS)));
  const dropped = await db.query<{ month: string }>(dropOldDeliveries(new Date(now - KEEP_DAYS * DAY_MS)));
  if (dropped.length > 0)
    log.info({ part: 'webhooks', months: dropped.map(({ month }) => month) }, 'old deliveries were dropped');
  await endAbandoned(service);
  if (isSharded(service)) await resolveOldHolds(service);
}

/** Ends deliveries that wait for disabled or removed endpoints, a part at a time. */
async function endAbandoned({ db, buckets, clock }: Service): Promise<void> {
  for (const { id } of await db.query<{ id: number }>(listAbandoned())) {
    for (const bucket of buckets.all) {
      for (let failed = PART; failed === PART; ) {
        const [row] = await db.query<{ failed: number }>(failPending(bucket, id, PART, clock()));
        failed = row?.failed ?? 0;
      }
    }
  }
}
