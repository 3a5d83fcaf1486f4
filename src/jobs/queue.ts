import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { isLockTimeout } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { warningsOf } from '../log.ts';

/**
 * Background work: jobs are rows of a table. A process takes a job by a lease, which it extends while it
 * works. If the process dies, the lease ends, and another process takes the job again. Work is therefore
 * written so that a second run of it, or a parallel one, does no harm.
 */

/** A job as a process takes it. */
type Job = {
  readonly id: number;
  readonly task: string;
  /** The subject of the job, such as the number of a batch; null for jobs that may be open several times. */
  readonly subject: string | null;
  /** JSON. */
  readonly input: string;
  /** The operator who started it, as JSON; null for work of the service itself. */
  readonly actor: string | null;
  /** Its consecutive failures. */
  readonly tries: number;
};

/**
 * The work of a task.
 * @param stopping becomes true when the process has to stop. Long work then ends early.
 * @returns the milliseconds after which the job is run again, behind those that wait by then; undefined if
 *   it is done
 */
export type Run = (service: Service, job: Job, stopping: () => boolean) => Promise<number | undefined>;

/** Tasks that share a number of places in each process. */
export type Group = {
  /** How many jobs of the group run at a time. */
  readonly atOnce: number;
  readonly tasks: Readonly<Record<string, Run>>;
};

/** Work that every free process does, one at a time. */
export type Scheduled = {
  /** It begins at multiples of this time. */
  readonly everyMs: number;
  readonly run: (service: Service, stopping: () => boolean) => Promise<void>;
};

/** The lease of a job. A process extends it four times before it ends, so that a busy moment loses no job. */
const LEASE_MS = 12_000;
const LEASE_END = sql`now() + ${LEASE_MS} * interval '1 millisecond'`;
/** The longest delay of a job that another process added. */
const POLL_MS = 200;
/** The first retries are quick: most failures are over within seconds. */
const RETRY_MS = 2_000;
const RETRY_MAX_MS = 300_000;
/** The number of tries before the delay grows. */
const QUICK_TRIES = 10;

/**
 * Adds a job of the service in the transaction of its cause, so that both exist or neither does. At most one
 * job for a task and subject is open at a time.
 */
export async function enqueue(
  tx: Queries,
  task: string,
  subject: number | string,
  delayMs = 0,
): Promise<void> {
  await tx.query(sql`
insert into jobs (task, subject, created_at, due_at)
values (${task}, ${String(subject)}, now(), now() + ${delayMs} * interval '1 millisecond')
on conflict (task, subject) where state in ('WAITING', 'RUNNING') do nothing`);
}

/**
 * Takes the job of these tasks that is due and has waited longest, or whose process has died.
 * @param id only this job
 */
async function take(db: Queries, tasks: readonly string[], id: number | null): Promise<Job | undefined> {
  const [job] = await db.query<Job>(sql`
update jobs set
  state = 'RUNNING', started_at = coalesce(started_at, now()), leased_until = ${LEASE_END}
where id = (
  select id from jobs
  where state in ('WAITING', 'RUNNING') and task = any(${tasks}::text[])
    and due_at <= now() and (leased_until is null or leased_until < now())
    and (${id}::int is null or id = ${id})
  order by due_at limit 1 for update skip locked
)
returning *`);
  return job;
}

/** Works on the jobs of these groups, and on a schedule, until it is stopped. */
export function startJobs(
  service: Service,
  groups: readonly Group[],
  schedule: Readonly<Record<string, Scheduled>> = {},
): { stop(): Promise<void> } {
  const worker = new Worker(service, [...groups, ...groupsOf(schedule)]);
  const working = worker.work(schedule);
  return {
    async stop() {
      worker.stopping.abort();
      await working;
    },
  };
}

/** Runs a job, unless another process runs it. */
export async function runJob(
  service: Service,
  groups: readonly Group[],
  id: number,
  stopping: () => boolean,
): Promise<void> {
  const tasks = Object.assign({}, ...groups.map((group) => group.tasks)) as Group['tasks'];
  const job = await take(service.db, Object.keys(tasks), id);
  if (job) await runLeased(service, job, tasks[job.task] as Run, stopping);
}

class Worker {
  readonly stopping = new AbortController();
  readonly #service: Service;
  readonly #warn: ReturnType<typeof warningsOf>;
  readonly #groups: readonly Group[];
  readonly #running = new Map<Promise<void>, Group>();

  constructor(service: Service, groups: readonly Group[]) {
    this.#service = service;
    this.#warn = warningsOf(service.log, 'jobs');
    this.#groups = groups;
  }

  async work(schedule: Readonly<Record<string, Scheduled>>): Promise<void> {
    const { signal } = this.stopping;
    let isScheduled = false;
    while (!signal.aborted) {
      try {
        if (!isScheduled) await this.#addSchedule(schedule);
        isScheduled = true;
        if (await this.#take()) continue;
      } catch (error) {
        this.#warn(error, 'jobs cannot be read');
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
      }
      await this.#rest();
    }
    await Promise.all(this.#running.keys());
  }

  /** Scheduled work is a job that is never done. */
  async #addSchedule(schedule: Readonly<Record<string, Scheduled>>): Promise<void> {
    for (const [name, { everyMs }] of Object.entries(schedule))
      await enqueue(this.#service.db, name, SCHEDULED, untilNext(this.#service.clock(), everyMs));
  }

  /** Takes a job and begins to run it. @returns whether there was one, and a place for it */
  async #take(): Promise<boolean> {
    const free = this.#groups.filter(
      (group) => [...this.#running.values()].filter((each) => each === group).length < group.atOnce,
    );
    const tasks = free.flatMap((group) => Object.keys(group.tasks));
    if (tasks.length === 0) return false;
    const job = await take(this.#service.db, tasks, null);
    if (!job) return false;
    const group = free.find((each) => Object.hasOwn(each.tasks, job.task)) as Group;
    const isStopping = () => this.stopping.signal.aborted;
    const running = runLeased(this.#service, job, group.tasks[job.task] as Run, isStopping)
      // The lease ends, and the job is taken again.
      .catch((error: unknown) => this.#warn(error, 'a job was interrupted'))
      .finally(() => {
        this.#running.delete(running);
        this.#service.jobs.emit('added');
      });
    this.#running.set(running, group);
    return true;
  }

  /** Waits for a job of this process, for a free place, or for the time to look for other jobs. */
  async #rest(): Promise<void> {
    const rested = new AbortController();
    const signal = AbortSignal.any([rested.signal, this.stopping.signal]);
    const waits = [sleep(POLL_MS, undefined, { signal }), once(this.#service.jobs, 'added', { signal })];
    await Promise.race(waits).catch(() => {});
    rested.abort();
    await Promise.allSettled(waits);
  }
}

/** Ends the lease of a job that goes on later. */
async function postpone({ db }: Service, { id }: Job, delayMs: number, tries: number): Promise<void> {
  await db.query(sql`
update jobs set
  state = 'WAITING', leased_until = null, due_at = now() + ${delayMs} * interval '1 millisecond',
  tries = ${tries}
where id = ${id} and state = 'RUNNING'`);
}

/** Runs a job whose lease this process has, and stores its outcome. */
async function runLeased(service: Service, job: Job, run: Run, stopping: () => boolean): Promise<void> {
  const { db, log } = service;
  const extended = sql`
update jobs set leased_until = ${LEASE_END} where id = ${job.id} and state = 'RUNNING'`;
  const timer = setInterval(() => void db.query(extended).catch(() => {}), LEASE_MS / 4);
  try {
    const againMs = await run(service, job, stopping);
    if (againMs !== undefined) await postpone(service, job, againMs, 0);
    // An operator's job has stored its result, and stays.
    else if (job.actor === null) await db.query(sql`delete from jobs where id = ${job.id}`);
  } catch (error) {
    log.warn({ part: 'jobs', task: job.task, subject: job.subject, err: error }, 'a job is tried again');
    await postpone(service, job, retryAfter(job.tries), job.tries + 1);
  } finally {
    clearInterval(timer);
  }
}

const retryAfter = (tries: number) =>
  Math.min(RETRY_MS * 2 ** Math.max(0, tries - QUICK_TRIES), RETRY_MAX_MS);

/** The subject of scheduled jobs: each of them is open once. */
const SCHEDULED = 'schedule';

/** A failure of scheduled work does not repeat it earlier. */
const groupsOf = (schedule: Readonly<Record<string, Scheduled>>): Group[] =>
  Object.entries(schedule).map(([name, scheduled]) => {
    const run = orLater(name, scheduled);
    return {
      atOnce: 1,
      tasks: {
        async [name](service, _job, stopping) {
          const startedAt = service.clock().getTime();
          await run(service, stopping);
          const now = service.clock();
          // Its time came again while it ran: it took long, or the clock of a sandbox was advanced.
          const isDue = now.getTime() - startedAt >= scheduled.everyMs;
          return isDue ? 0 : untilNext(now, scheduled.everyMs);
        },
      },
    };
  });

const untilNext = (now: Date, everyMs: number) => everyMs - (now.getTime() % everyMs);

/** Makes all scheduled work due at once: time was skipped. */
export async function bringScheduleForward({ db, jobs }: Service): Promise<void> {
  await db.query(sql`update jobs set due_at = now() where subject = ${SCHEDULED} and state = 'WAITING'`);
  jobs.emit('added');
}

/**
 * Returns a run of scheduled work that logs a failure. A lock that it did not get in time means later: the
 * schedule tries again. That is logged once, until a run succeeds.
 */
export function orLater(task: string, { run }: Pick<Scheduled, 'run'>): Scheduled['run'] {
  let isDelayed = false;
  return async (service, stopping) => {
    try {
      await run(service, stopping);
      isDelayed = false;
    } catch (error) {
      if (!isLockTimeout(error)) return service.log.warn({ part: 'jobs', task, err: error }, 'a task failed');
      if (!isDelayed)
        service.log.warn(
          { part: 'jobs', task },
          'another transaction holds a lock that this task needs: it is tried again',
        );
      isDelayed = true;
    }
  };
}
