import type { Task } from '../jobs/enqueue.ts';
import type { TaskRun } from '../jobs/worker.ts';
import { voidBatch } from './cancel.ts';
import { fillBatch, resumeStalled } from './fill.ts';

/** Everything that is done in the background. */
export const TASKS: Record<Task, TaskRun> = { 'fill-batch': fillBatch, 'void-batch': voidBatch };

/** What is looked for every few seconds. */
export const sweep = resumeStalled;
