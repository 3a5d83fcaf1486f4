import { keepBooks } from '../books/close.ts';
import { createPartitions } from '../db/partitions.ts';
import type { Scheduled } from '../jobs/worker.ts';
import { DAY_ENDS } from '../settlement/terms.ts';
import { dropDeclines } from '../vouchers/declines.ts';
import { dropDeliveries, endAbandoned } from '../webhooks/record.ts';

/**
 * All work that runs by the calendar, in UTC. Tills go on beside it, and so do long readers such as reports
 * and dumps. No entry may wait in front of a till: a test runs each of them between the two.
 */
export const SCHEDULE: Readonly<Record<string, Scheduled>> = {
  // Sweeps expired vouchers, seals slices, and closes days.
  'keep-books': {
    match: '*/5 * * * *',
    run: (service, stopping) => keepBooks(service, DAY_ENDS, stopping),
  },
  'create-partitions': {
    match: '*/10 * * * *',
    async run({ db, clock }) {
      const now = clock();
      await createPartitions(db, now, now);
    },
  },
  'end-deliveries': { match: '*/10 * * * *', run: endAbandoned },
  'drop-deliveries': { match: '3 * * * *', run: dropDeliveries },
  'drop-declines': { match: '4 * * * *', run: dropDeclines },
};
