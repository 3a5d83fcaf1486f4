import { type Actor, createService, type Operator, type Service } from '../context.ts';
import { isUnavailable, retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { within } from '../db/within.ts';
import type { Group, Run } from '../jobs/jobs.ts';
import type { Caller } from '../operation.ts';
import { Problem } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import {
  countJobRows,
  endJob,
  endJobRow,
  findJobRow,
  insertJob,
  listOpenRows,
  lockJobRow,
} from './jobs.queries.ts';

/**
 * Operators' jobs: long work in the background, row by row or as a whole. Each row is a separate transaction
 * that also stores the result. An interrupted job continues after the last row that was done, and no row is
 * done twice.
 */

type JobState = 'WAITING' | 'RUNNING' | 'COMPLETED' | 'CANCELED' | 'FAILED';

export type JobRow = {
  readonly id: number;
  readonly task: string;
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

/** Returns the tasks of operators' jobs, one of which runs at a time in each process. */
export const groupOf = (runs: JobRuns): Group => ({
  atOnce: 1,
  tasks: Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, taskOf(run)])),
});

function taskOf(run: JobRun): Run {
  return async (service, { id, input: text, actor: by }, stopping) => {
    const { db, clock, log } = service;
    const actor = JSON.parse(by as string) as Actor;
    const input = JSON.parse(text) as never;
    const end = (state: JobState, result: string | null, failure: string | null) =>
      db.query(endJob(id, state, result, failure, clock()));
    try {
      if ('whole' in run) {
        await end('COMPLETED', JSON.stringify(await run.whole({ service, actor }, input)), null);
        return undefined;
      }
      const each = (within: Service, subject: string) => run.row({ service: within, actor }, input, subject);
      const state = await runRows(service, id, each, stopping);
      if (!state) return 0;
      await end(state, null, null);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      log.error({ part: 'jobs', jobId: id, err: error }, 'a job failed');
      await end('FAILED', null, (error as Error).message);
    }
    return undefined;
  };
}

/**
 * Runs the rows of a job.
 * @returns the job's final state; undefined if it was interrupted and continues later
 */
async function runRows(
  service: Service,
  id: number,
  run: (service: Service, subject: string) => Promise<void>,
  stopping: () => boolean,
): Promise<'COMPLETED' | 'CANCELED' | undefined> {
  const { db } = service;
  for (;;) {
    const [counted] = await db.query<{ canceled: boolean }>(countJobRows(id));
    if (counted?.canceled) return 'CANCELED';
    const rows = await db.query<{ number: number; subject: string }>(listOpenRows(id, CHUNK));
    if (rows.length === 0) return 'COMPLETED';
    for (const { number } of rows) {
      if (stopping()) return undefined;
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
