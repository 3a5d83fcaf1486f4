import { keepBooks } from '../books/close.ts';
import { createPartitions } from '../db/partitions.ts';
import type { Scheduled } from '../jobs/queue.ts';
import { resolveOldHolds } from '../ledger/holds.ts';
import { deleteWhatEnded } from '../people/sessions.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { HOUR_MS, MINUTE_MS } from '../time.ts';
import { dropDeclines } from '../vouchers/declines.ts';
import { dropDeliveries, endAbandoned } from '../webhooks/record.ts';

/**
 * All work that runs by the calendar, in UTC. Tills go on beside it, and so do long readers such as reports
 * and dumps. No entry may wait in front of a till: a test runs each of them between the two.
 */
export const SCHEDULE: Readonly<Record<string, Scheduled>> = {
  // Sweeps expired vouchers, seals slices, and closes days.
  'keep-books': {
    everyMs: 5 * MINUTE_MS,
    run: (service, stopping) => keepBooks(service, DAY_ENDS, stopping),
  },
  'create-partitions': {
    everyMs: 10 * MINUTE_MS,
    async run({ db, clock }) {
      const now = clock();
      await createPartitions(db, now, now);
    },
  },
  'end-deliveries': { everyMs: 10 * MINUTE_MS, run: endAbandoned },
  'drop-deliveries': { everyMs: HOUR_MS, run: dropDeliveries },
  'drop-declines': { everyMs: HOUR_MS, run: dropDeclines },
  'delete-sign-ins': { everyMs: 10 * MINUTE_MS, run: deleteWhatEnded },
  // What a process that died left on a float.
  'resolve-holds': { everyMs: 5_000, run: resolveOldHolds },
};
