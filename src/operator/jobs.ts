import { setTimeout as sleep } from 'node:timers/promises';
import { type Actor, createService, type Operator, type Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { within } from '../db/within.ts';
import { Refusal } from '../refusal.ts';
import {
  endJob,
  endJobRow,
  extendJob,
  findJobRow,
  insertJob,
  listOpenRows,
  lockJobRow,
  takeJob,
} from './jobs.queries.ts';
import type { Caller } from './operations.ts';
import { Problem } from './problem.ts';

/**
 * Long work in the background, row by row or as a whole. Each row is a separate transaction that also stores
 * the result. An interrupted job continues after the last row that was done, and no row is done twice.
 */

type JobState = 'WAITING' | 'RUNNING' | 'COMPLETED' | 'CANCELED' | 'FAILED';

export type JobRow = {
  readonly id: number;
  readonly operation: string;
  readonly input: string;
  readonly actor: string;
  readonly state: JobState;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly result: string | null;
  readonly failure: string | null;
};

/** The work of a job: for each of its subjects, or as a whole. */
type JobRun =
  | { row(operator: Operator, input: never, subject: string): Promise<void> }
  | { whole(operator: Operator, input: never): Promise<unknown> };

/** The work of each job, by the name of the operation. */
export type JobRuns = Readonly<Record<string, JobRun>>;

const LEASE_MS = 15_000;
const POLL_MS = 500;
/** The number of rows between two checks whether the job was canceled. */
const CHUNK = 20;

/** Creates a job in the transaction of its request. */
export async function createJob(
  tx: Queries,
  { service, actor }: Caller,
  operation: string,
  input: object,
  subjects: readonly string[],
): Promise<JobRow> {
  const [job] = await tx.query<JobRow>(
    insertJob({
      operation,
      input: JSON.stringify(input),
      actor: JSON.stringify(actor),
      subjects,
      now: service.clock(),
    }),
  );
  return job as JobRow;
}

export async function findJob(db: Queries, id: number): Promise<JobRow | undefined> {
  const [job] = await db.query<JobRow>(findJobRow(id));
  return job;
}

/** Works on the jobs of the database until it is stopped. */
export function startJobs(service: Service, runs: JobRuns): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const working = (async () => {
    while (!signal.aborted) {
      const isDone = await runJob(service, runs, null, signal).catch((error: Error) => {
        service.log.warn({ part: 'jobs', error: error.message }, 'a job was interrupted');
        return false;
      });
      if (!isDone) await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await working;
    },
  };
}

/**
 * Runs a given job, or the oldest one that waits.
 * @returns false if there is none
 */
export async function runJob(
  service: Service,
  runs: JobRuns,
  id: number | null,
  signal: AbortSignal,
): Promise<boolean> {
  const { db, clock } = service;
  const [job] = await db.query<JobRow>(takeJob(id, clock(), LEASE_MS));
  if (!job) return false;
  const run = runs[job.operation];
  const actor = JSON.parse(job.actor) as Actor;
  const input = JSON.parse(job.input) as never;
  try {
    if (!run) throw new Error(`no process knows how to perform ${job.operation}`);
    if ('whole' in run) {
      const result = await keeping(service, job.id, () => run.whole({ service, actor }, input));
      await db.query(endJob(job.id, 'COMPLETED', JSON.stringify(result), null, clock()));
      return true;
    }
    const state = await runRows(
      service,
      job.id,
      (within, subject) => run.row({ service: within, actor }, input, subject),
      signal,
    );
    if (state) await db.query(endJob(job.id, state, null, null, clock()));
    return true;
  } catch (error) {
    await db.query(endJob(job.id, 'FAILED', null, (error as Error).message, clock()));
    service.log.error({ part: 'jobs', jobId: job.id, err: error }, 'a job failed');
    return true;
  }
}

/** Extends the lease of a job while it runs as a whole. */
async function keeping<T>({ db, clock }: Service, id: number, run: () => Promise<T>): Promise<T> {
  const timer = setInterval(
    () => void db.query(extendJob(id, clock(), LEASE_MS)).catch(() => {}),
    LEASE_MS / 3,
  );
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}

/**
 * Runs the rows of a job.
 * @returns the job's final state; undefined if it was interrupted and continues later
 */
async function runRows(
  service: Service,
  id: number,
  run: (service: Service, subject: string) => Promise<void>,
  signal: AbortSignal,
): Promise<'COMPLETED' | 'CANCELED' | undefined> {
  const { db, clock } = service;
  for (;;) {
    const [kept] = await db.query<{ canceled: boolean }>(extendJob(id, clock(), LEASE_MS));
    if (kept?.canceled) return 'CANCELED';
    const rows = await db.query<{ number: number; subject: string }>(listOpenRows(id, CHUNK));
    if (rows.length === 0) return 'COMPLETED';
    for (const { number } of rows) {
      if (signal.aborted) return undefined;
      await runRow(service, id, number, run);
    }
  }
}

/** Runs a row. If the row is declined, the reason is stored; any other error ends the job. */
async function runRow(
  service: Service,
  id: number,
  number: number,
  run: (service: Service, subject: string) => Promise<void>,
): Promise<void> {
  const { db } = service;
  try {
    await retrying(() =>
      db.transaction(async (tx) => {
        const [row] = await tx.query<{ subject: string }>(lockJobRow(id, number));
        if (!row) return;
        const bound = within(db, tx);
        await run(createService({ ...service, db: bound, readDb: bound }), row.subject);
        await tx.query(endJobRow(id, number, 'ok', null));
      }),
    );
  } catch (error) {
    if (!(error instanceof Refusal) && !(error instanceof Problem)) throw error;
    await db.query(endJobRow(id, number, error.code, error.message));
  }
}
