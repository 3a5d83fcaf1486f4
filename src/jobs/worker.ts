import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { isLockTimeout } from '../db/errors.ts';
import {
  parseCronItems,
  QUEUE,
  type Runner,
  run,
  type TaskList,
  type WorkerEvents,
  Logger as WorkerLogger,
} from '../db/graphile-worker.ts';
import type { Task } from './enqueue.ts';

/** The work of a task. `stopping` becomes true when the worker has to stop. Long work then ends early. */
export type TaskRun = (service: Service, batchId: number, stopping: () => boolean) => Promise<void>;

/** Work that runs on a schedule. `match` is a crontab pattern in UTC. One free process runs it each time. */
export type Scheduled = {
  readonly match: string;
  readonly run: (service: Service, stopping: () => boolean) => Promise<void>;
};

export type Worker = { stop(): Promise<void> };

/** The number of batches produced at the same time. Each takes a core, so more would only be slower. */
const CONCURRENCY = 4;
/** The longest delay of a job whose notification was lost. */
const POLL_MS = 1_000;
/** The interval of the search for work that a dead worker left. */
const SWEEP_MS = 2_000;
/** The time after which a queue that gives up is abandoned. Its jobs and the database may never answer. */
const GIVE_UP_MS = 5_000;
/** The delay before a stopped queue is started again. */
const RESTART_MS = 500;

/**
 * Starts the background work of this process: the tasks of the queue, and a periodic search for work that a
 * dead worker left.
 */
export async function startWorker(
  service: Service,
  tasks: Record<Task, TaskRun>,
  sweep: (service: Service) => Promise<void>,
  schedule: Readonly<Record<string, Scheduled>> = {},
): Promise<Worker> {
  const { log } = service;
  let stopping = false;
  const taskList = taskListOf(service, tasks, schedule, () => stopping);
  const parsedCronItems = cronItemsOf(schedule);
  const pgPool = service.db.openPool('scrip-worker', CONCURRENCY + 2);
  // With a delay of 0, the queue collects the results of jobs and retries if storing them fails. Otherwise
  // nothing handles the failure, and the process ends.
  const start = async (): Promise<Queue> => {
    const events: WorkerEvents = new EventEmitter();
    const givesUp = once(events, 'pool:gracefulShutdown');
    const runner = await run({
      pgPool,
      events,
      taskList,
      parsedCronItems,
      concurrency: CONCURRENCY,
      pollInterval: POLL_MS,
      noHandleSignals: true,
      preset: { worker: { ...QUEUE, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
      logger: new WorkerLogger(() => (level, message) => {
        if (level === 'error' || level === 'warning') log.warn({ part: 'worker' }, message);
        else log.trace({ part: 'worker' }, message);
      }),
    });
    return { runner, givesUp };
  };
  let queue = await start();
  const asked = new AbortController();
  const working = (async () => {
    // The queue gives up if it loses the database in the middle of a job. The process continues: the job
    // stays in the queue, and the next worker takes it.
    while (!stopping) {
      await ended(queue);
      if (stopping) break;
      log.warn({ part: 'worker' }, 'the queue has stopped: starting it again');
      await sleep(RESTART_MS, undefined, { signal: asked.signal }).catch(() => {});
      if (stopping) break;
      queue = await start().catch(() => queue);
      if (stopping) await stopped(queue);
    }
  })();
  const look = () =>
    void sweep(service).catch((error: Error) =>
      log.warn({ part: 'worker', error: error.message }, 'sweep failed'),
    );
  look();
  const timer = setInterval(look, SWEEP_MS);
  return {
    async stop() {
      stopping = true;
      asked.abort();
      clearInterval(timer);
      // A queue that has stopped by itself rejects the request to stop.
      await stopped(queue);
      await working;
      await Promise.race([pgPool.end(), pause()]);
    },
  };
}

function taskListOf(
  service: Service,
  tasks: Record<Task, TaskRun>,
  schedule: Readonly<Record<string, Scheduled>>,
  stopping: () => boolean,
): TaskList {
  return Object.fromEntries([
    ...Object.entries(tasks).map(([name, task]) => [
      name,
      (payload: unknown) => task(service, (payload as { batchId: number }).batchId, stopping),
    ]),
    ...Object.entries(schedule).map(([name, each]) => [name, orLater(service, name, each, stopping)]),
  ]);
}

/**
 * Returns a run of scheduled work. A lock that it did not get in time means later: the schedule tries again.
 * That is logged once, until a run succeeds.
 */
export function orLater(
  service: Service,
  task: string,
  { run }: Pick<Scheduled, 'run'>,
  stopping: () => boolean,
) {
  let isDelayed = false;
  return async (): Promise<void> => {
    try {
      await run(service, stopping);
      isDelayed = false;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (!isDelayed)
        service.log.warn(
          { part: 'worker', task },
          'another transaction holds a lock that this task needs: it is tried again',
        );
      isDelayed = true;
    }
  };
}

const cronItemsOf = (schedule: Readonly<Record<string, Scheduled>>) =>
  parseCronItems(
    Object.entries(schedule).map(([task, { match }]) => ({
      task,
      match,
      options: { jobKey: task, maxAttempts: 1 },
    })),
  );

type Queue = { readonly runner: Runner; readonly givesUp: Promise<unknown> };

const pause = () => sleep(GIVE_UP_MS, undefined, { ref: false });

/**
 * Waits until a queue has ended, or has given up without ending. Its running jobs continue. Two workers on
 * one batch are safe.
 */
async function ended({ runner, givesUp }: Queue): Promise<void> {
  const end = runner.promise.catch(() => {});
  await Promise.race([end, givesUp]);
  await Promise.race([end, pause()]);
}

/** Asks a queue to stop. A queue that has already given up may never confirm it. */
async function stopped({ runner, givesUp }: Queue): Promise<void> {
  const gaveUp = await Promise.race([givesUp.then(() => true), Promise.resolve(false)]);
  const stop = runner.stop().catch(() => {});
  await (gaveUp ? Promise.race([stop, pause()]) : stop);
}
