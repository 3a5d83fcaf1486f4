import { isSharded, type Service } from '../context.ts';
import type { Task } from '../jobs/enqueue.ts';
import type { TaskRun } from '../jobs/worker.ts';
import { resolveOldHolds } from '../ledger/holds.ts';
import { voidBatch } from './cancel.ts';
import { fillBatch, resumeStalled } from './fill.ts';

/** The tasks of background work. */
export const TASKS: Record<Task, TaskRun> = { 'fill-batch': fillBatch, 'void-batch': voidBatch };

/** Resumes the work of dead processes. It runs every few seconds. */
export async function sweep(service: Service): Promise<void> {
  await resumeStalled(service);
  if (isSharded(service)) await resolveOldHolds(service);
}
