import { isSharded, type Service } from '../context.ts';
import type { Task } from '../jobs/enqueue.ts';
import type { TaskRun } from '../jobs/worker.ts';
import { resolveOldHolds } from '../ledger/holds.ts';
import { voidBatch } from './cancel.ts';
import { fillBatch, resumeStalled } from './fill.ts';

/** Everything that is done in the background. */
export const TASKS: Record<Task, TaskRun> = { 'fill-batch': fillBatch, 'void-batch': voidBatch };

/** What is looked for every few seconds: what a process has left that died. */
export async function sweep(service: Service): Promise<void> {
  await resumeStalled(service);
  if (isSharded(service)) await resolveOldHolds(service);
}
