import type { Queries } from '../db/pool.ts';
import { addJob } from './queries.ts';

/** The tasks of background work, each for one batch. */
export type Task = 'fill-batch' | 'void-batch';

/**
 * Adds a job to the queue in the transaction of its cause, so that both exist or neither. At most one job for
 * a task and batch waits at a time. The payload is the number of the batch.
 */
export async function enqueue(tx: Queries, task: Task, batchId: number): Promise<void> {
  await tx.query(addJob(task, batchId, 'replace'));
}

/**
 * Adds a job again if its worker may have died. A waiting job keeps its place; otherwise it would move to the
 * end again and again.
 */
export async function keepQueued(tx: Queries, task: Task, batchId: number): Promise<void> {
  await tx.query(addJob(task, batchId, 'preserve_run_at'));
}
