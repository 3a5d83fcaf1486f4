import type { Group } from '../jobs/queue.ts';
import { voidBatch } from './cancel.ts';
import { fillBatch } from './fill.ts';

/** The background work of batches. Each job of a process takes a core, so more at a time would be slower. */
export const BATCH_JOBS: Group = {
  atOnce: 4,
  tasks: {
    'fill-batch': (service, { subject }, stopping) => fillBatch(service, Number(subject), stopping),
    async 'void-batch'(service, { subject }) {
      await voidBatch(service, Number(subject));
      return undefined;
    },
  },
};
