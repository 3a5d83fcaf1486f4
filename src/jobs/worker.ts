import { run, Logger as WorkerLogger } from 'graphile-worker';
import type { Service } from '../context.ts';
import { openWorkerPool } from '../db/pool.ts';
import type { Task } from './enqueue.ts';

/** What a task does; `stopping` turns true when the worker is asked to stop, so that long work can give way. */
export type TaskRun = (service: Service, batchId: number, stopping: () => boolean) => Promise<void>;

export type Worker = { stop(): Promise<void> };

/** Batches produced side by side. Each takes a core for its codes, so more only makes all of them slower. */
const CONCURRENCY = 4;
/** How late a job starts at most where its notification was lost. */
const POLL_MS = 1_000;
/** How often work is looked for whose worker has died. */
const SWEEP_MS = 2_000;

/**
 * Starts the background work of this process: the tasks of the queue, and a look every few seconds for what a dead worker
 * has left behind.
 */
export async function startWorker(
  service: Service,
  tasks: Record<Task, TaskRun>,
  sweep: (service: Service) => Promise<void>,
): Promise<Worker> {
  const { log } = service;
  let stopping = false;
  const taskList = Object.fromEntries(
    Object.entries(tasks).map(([name, task]) => [
      name,
      (payload: unknown) => task(service, (payload as { batchId: number }).batchId, () => stopping),
    ]),
  );
  const pgPool = openWorkerPool(service.db.url, CONCURRENCY + 2);
  const runner = await run({
    pgPool,
    taskList,
    concurrency: CONCURRENCY,
    pollInterval: POLL_MS,
    noHandleSignals: true,
    logger: new WorkerLogger(() => (level, message) => {
      if (level === 'error' || level === 'warning') log.warn({ part: 'worker' }, message);
      else log.trace({ part: 'worker' }, message);
    }),
  });
  const look = () =>
    void sweep(service).catch((error: Error) => log.warn({ part: 'worker', error: error.message }, 'sweep failed'));
  look();
  const timer = setInterval(look, SWEEP_MS);
  return {
    async stop() {
      stopping = true;
      clearInterval(timer);
      await runner.stop();
      await pgPool.end();
    },
  };
}
