import { readVouchersOf } from '../batches/download.ts';
import { sweep, TASKS } from '../batches/tasks.ts';
import type { Config } from '../config.ts';
import type { Service } from '../context.ts';
import { startWorker, type Worker } from '../jobs/worker.ts';
import { startDelivery } from '../webhooks/deliver.ts';
import { createSender } from '../webhooks/send.ts';

/** Starts the background work: the jobs of the queue, and the deliveries of webhooks. */
export async function startBackground(service: Service, { webhookAllowPrivate }: Config): Promise<Worker> {
  const worker = await startWorker(service, TASKS, sweep);
  const sender = createSender({ allowPrivate: webhookAllowPrivate, clock: service.clock });
  const delivery = startDelivery(service, sender, readVouchersOf);
  return {
    async stop() {
      await Promise.all([worker.stop(), delivery.stop()]);
    },
  };
}
