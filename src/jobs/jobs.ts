import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import { type Actor, inside, type Operator, type Service } from '../context.ts';
import { isUnavailable, retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { listing } from '../listing.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { CARE, SEE_VOUCHERS } from '../principal.ts';
import { Problem, requireRow } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import { Count, Id, NullableText, NullableTime, Text, Time, toId, Word } from '../schema.ts';
import type { Group, Run } from './queue.ts';

/**
 * Operators' jobs: long work in the background, row by row or as a whole. Each row is a separate transaction
 * that also stores the result. An interrupted job continues after the last row that was done, and no row is
 * done twice.
 */

const STATES = ['WAITING', 'RUNNING', 'COMPLETED', 'CANCELED', 'FAILED'] as const;

export const JobSchema = Type.Object(
  {
    id: Id('job'),
    operation: Text,
    input: Type.Unsafe<unknown>({ description: 'What it does to each row, such as the action.' }),
    state: Word(STATES),
    total: { ...Count, description: 'Its rows; 0 for a job without rows.' },
    done: Count,
    failed: { ...Count, description: 'Rows that were declined.' },
    createdBy: Text,
    createdAt: Time,
    startedAt: NullableTime,
    endedAt: NullableTime,
    result: Type.Unsafe<unknown>({ description: 'Of a job without rows; null until it is done.' }),
    failure: NullableText,
  },
  { title: 'Job' },
);

export type Job = Static<typeof JobSchema>;

const COLUMNS = columnsOf(JobSchema, undefined, {
  operation: sql`task`,
  input: sql`input::json`,
  createdBy: sql`actor::jsonb ->> 'name'`,
  result: sql`result::jsonb`,
});

/** The work of a job: for each of its subjects, or as a whole. */
type JobRun =
  | { row(operator: Operator, input: never, subject: string): Promise<void> }
  | { whole(operator: Operator, input: never): Promise<unknown> };

/** The work of each job, by the name of the operation. */
export type JobRuns = Readonly<Record<string, JobRun>>;

/**
 * Creates a job in the transaction of its request.
 * @param subjects one for each row, such as serial numbers; empty for a job as a whole
 */
export async function createJob(
  tx: Queries,
  { service, actor }: Caller,
  operation: string,
  input: object,
  subjects: readonly string[],
): Promise<Job> {
  const [job] = await tx.query<Job>(sql`
with job as (
  insert into jobs (task, input, actor, total, created_at)
  values (${operation}, ${JSON.stringify(input)}, ${JSON.stringify(actor)}, ${subjects.length},
    ${service.clock()}) returning *
), rows as (
  insert into job_rows (job_id, number, subject)
  select job.id, s.number, s.subject
  from job cross join unnest(${subjects}::text[]) with ordinality s (subject, number)
)
select ${COLUMNS} from job`);
  return job as Job;
}

/** Returns the tasks of operators' jobs. Each process runs one of them at a time. */
export const groupOf = (runs: JobRuns): Group => ({
  atOnce: 1,
  tasks: Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, taskOf(run)])),
});

function taskOf(run: JobRun): Run {
  return async (service, { id, input: text, actor: by }, stopping) => {
    const actor = JSON.parse(by as string) as Actor;
    const input = JSON.parse(text) as never;
    try {
      if ('whole' in run) {
        await end(service, id, 'COMPLETED', { result: await run.whole({ service, actor }, input) });
        return undefined;
      }
      const each = (within: Service, subject: string) => run.row({ service: within, actor }, input, subject);
      const state = await runRows(service, id, each, stopping);
      if (!state) return 0;
      await end(service, id, state);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      service.log.error({ part: 'jobs', jobId: id, err: error }, 'a job failed');
      await end(service, id, 'FAILED', { failure: (error as Error).message });
    }
    return undefined;
  };
}

async function end(
  { db, clock }: Service,
  id: number,
  state: (typeof STATES)[number],
  { result, failure = null }: { readonly result?: unknown; readonly failure?: string | null } = {},
): Promise<void> {
  await db.query(sql`
update jobs set
  state = ${state}, result = ${result === undefined ? null : JSON.stringify(result)}, failure = ${failure},
  ended_at = ${clock()}, leased_until = null,
  done = case
    when total = 0 then done
    else (select count(*) from job_rows where job_id = ${id} and outcome is not null)
  end
where id = ${id} and state = 'RUNNING'`);
}

/** The number of rows between two checks whether the job was canceled. */
const CHUNK = 20;

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
    const [counted] = await db.query<{ isCanceled: boolean }>(sql`
update jobs j set done = c.done, failed = c.failed
from (
  select count(*) filter (where outcome is not null)::int as done,
    count(*) filter (where outcome is not null and outcome <> 'ok')::int as failed
  from job_rows where job_id = ${id}
) c
where j.id = ${id}
returning j.asked_to_cancel as "isCanceled"`);
    if (counted?.isCanceled) return 'CANCELED';
    const open = await db.query<{ number: number }>(sql`
select number from job_rows where job_id = ${id} and outcome is null order by number limit ${CHUNK}`);
    if (open.length === 0) return 'COMPLETED';
    for (const { number } of open) {
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
  const row = sql`job_id = ${id} and number = ${number}`;
  try {
    await retrying(() =>
      db.transaction(async (tx) => {
        // Two processes never work on a row: the second one waits, and finds it done.
        const [open] = await tx.query<{ subject: string }>(
          sql`select subject from job_rows where ${row} and outcome is null for update`,
        );
        if (!open) return;
        await run(inside(service, tx), open.subject);
        await tx.query(sql`update job_rows set outcome = 'ok' where ${row}`);
      }),
    );
  } catch (error) {
    if (!(error instanceof Refusal) && !(error instanceof Problem)) throw error;
    const { code, message } = error;
    await db.query(sql`update job_rows set outcome = ${code}, message = ${message} where ${row}`);
  }
}

/** Returns a job. @throws Problem if there is no such job */
function requireJob({ service }: Caller, id: string): Promise<Job> {
  const find = sql`select ${COLUMNS} from jobs where id = ${toId(id)} and actor is not null`;
  return requireRow(service.db, find, `job ${id}`);
}

const JobId = JobSchema.properties.id;

const list = listing({
  name: 'job.list',
  summary: 'List jobs, newest first',
  path: '/jobs',
  roles: SEE_VOUCHERS,
  item: JobSchema,
  columns: ['id', 'operation', 'state', 'total', 'done', 'failed', 'startedAt', 'createdBy'],
  sorts: { id: sql`jobs.id`, isNewestFirst: true, keys: { createdAt: null } },
  rows: ({ service }, _filters, _after, count, order) =>
    service.readDb.query<Job>(sql`
select ${COLUMNS} from jobs
where actor is not null and ${order.after}
order by ${order.by} limit ${count}`),
});

export const showJob = reading({
  name: 'job.show',
  summary: 'Get a job and its progress',
  description: 'The same as events (`text/event-stream`) at `/jobs/{id}/events`,',
  path: '/jobs/:id',
  input: { id: JobId },
  output: JobSchema,
  roles: SEE_VOUCHERS,
  run: (caller, { id }) => requireJob(caller, id),
});

const RowSchema = Type.Object(
  {
    number: Type.Integer({ minimum: 1 }),
    subject: Type.String({ description: 'The serial number of a voucher.' }),
    outcome: NullableText,
    message: NullableText,
  },
  { title: 'JobRow' },
);

type JobRow = Static<typeof RowSchema>;

const listRows = (db: Queries, id: number, after: number, count: number) =>
  db.query<JobRow>(sql`
select number, subject, outcome, message from job_rows
where job_id = ${id} and number > ${after} order by number limit ${count}`);

const rows = listing({
  name: 'job.rows',
  summary:
    'List the result of each row of a job: `ok`, the code of a refusal, or null if it was not processed',
  path: '/jobs/:id/rows',
  roles: SEE_VOUCHERS,
  item: RowSchema,
  filters: { id: JobId },
  async rows(caller, { id }, [after = 0], count) {
    await requireJob(caller, id);
    return listRows(caller.service.db, toId(id), Number(after), count);
  },
  position: ({ number }) => [number],
});

/** Yields all rows of a job, for a file. */
export async function* readRows({ db }: Service, id: string): AsyncGenerator<JobRow[]> {
  for (let after = 0; ; ) {
    const found = await listRows(db, toId(id), after, READ_MAX);
    const last = found.at(-1);
    if (!last) return;
    yield found;
    after = last.number;
  }
}

const READ_MAX = 200;

const cancel = changing({
  name: 'job.cancel',
  title: 'Cancel the job',
  summary: 'Cancel a job; finished rows keep their results',
  path: '/jobs/:id/cancel',
  input: { id: JobId },
  output: JobSchema,
  roles: CARE,
  approval: alone('It stops work. What was done stays done.'),
  async run(caller, { id }) {
    const { state, done } = await requireJob(caller, id);
    return caller.service.db.transaction(async (tx) => {
      // A waiting job is canceled at once, a running job after its current row.
      const [job] = await tx.query<Job>(sql`
update jobs set
  asked_to_cancel = true,
  state = case when state = 'WAITING' then 'CANCELED' else state end,
  ended_at = case when state = 'WAITING' then ${caller.service.clock()} else ended_at end
where id = ${toId(id)} and actor is not null and state in ('WAITING', 'RUNNING')
returning ${COLUMNS}`);
      if (!job) throw new Problem('conflict', `job ${id} is ${state}: it has ended`);
      await audit(tx, caller, {
        action: 'job.cancel',
        subject: `job ${id}`,
        before: { state, done },
        after: { asked: true },
      });
      return job;
    });
  },
});

export const OPERATIONS = tableOf(list, showJob, rows, cancel);
