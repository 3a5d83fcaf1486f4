import type { Queries } from '../db/pool.ts';
import { addJob } from './queries.ts';

/** What is done in the background, each for one batch. */
export type Task = 'fill-batch' | 'void-batch';

/**
 * Puts a job into the queue, in the transaction of its cause: both are there, or neither. One job for a
 * task and batch waits at a time; the payload holds nothing but the batch's number.
 */
export async function enqueue(tx: Queries, task: Task, batchId: number): Promise<void> {
  await tx.query(addJob(task, batchId, 'replace'));
}

/**
 * Puts a job into the queue whose worker may be gone. One that waits keeps its place: else whoever waits
 * long would be sent to the end, again and again.
 */
export async function keepQueued(tx: Queries, task: Task, batchId: number): Promise<void> {
  await tx.query(addJob(task, batchId, 'preserve_run_at'));
}
