import type { Queries } from '../db/pool.ts';
import { addJob } from './queries.ts';

/** What is done in the background, each for one batch. */
export type Task = 'fill-batch' | 'void-batch';

/**
 * Puts a job into the queue, in the transaction of its cause: both are there, or neither. One job for a task and batch
 * waits at a time; the payload holds nothing but the batch's number.
 */
export async function enqueue(tx: Queries, task: Task, batchId: number): Promise<void> {
  await tx.query(addJob(task, batchId));
}
