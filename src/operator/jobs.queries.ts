import { type Sql, sql } from '../db/sql.ts';

export type NewJob = {
  readonly operation: string;
  readonly input: string;
  readonly actor: string;
  readonly subjects: readonly string[];
  readonly now: Date;
};

export function insertJob({ operation, input, actor, subjects, now }: NewJob): Sql {
  return sql`
with job as (
  insert into operator_jobs (operation, input, actor, total, created_at)
  values (${operation}, ${input}, ${actor}, ${subjects.length}, ${now}) returning *
), rows as (
  insert into operator_job_rows (job_id, number, subject)
  select job.id, s.number, s.subject
  from job cross join unnest(${subjects}::text[]) with ordinality s (subject, number)
)
select * from job`;
}

export function findJobRow(id: number): Sql {
  return sql`select * from operator_jobs where id = ${id}`;
}

/** Lists jobs before an id, newest first. */
export function listJobRows(before: number | null, limit: number): Sql {
  return sql`
select * from operator_jobs where ${before}::int is null or id < ${before} order by id desc limit ${limit}`;
}

/** Takes the oldest job that waits or whose process has died. Returns no row if there is none. */
export function takeJob(id: number | null, now: Date, leaseMs: number): Sql {
  return sql`
update operator_jobs set
  state = 'RUNNING', started_at = coalesce(started_at, ${now}),
  leased_until = ${now}::timestamptz + ${leaseMs} * interval '1 millisecond'
where id = (
  select id from operator_jobs
  where state in ('WAITING', 'RUNNING') and (leased_until is null or leased_until < ${now})
    and (${id}::int is null or id = ${id})
  order by id limit 1 for update skip locked
)
returning *`;
}

/** Extends the lease of a job and counts its rows. Returns `canceled` if the job has been canceled. */
export function extendJob(id: number, now: Date, leaseMs: number): Sql {
  return sql`
update operator_jobs j set
  leased_until = ${now}::timestamptz + ${leaseMs} * interval '1 millisecond', done = c.done, failed = c.failed
from (
  select count(*) filter (where outcome is not null)::int as done,
    count(*) filter (where outcome is not null and outcome <> 'ok')::int as failed
  from operator_job_rows where job_id = ${id}
) c
where j.id = ${id} and j.total > 0
returning j.asked_to_cancel as canceled`;
}

export function endJob(
  id: number,
  state: string,
  result: string | null,
  failure: string | null,
  now: Date,
): Sql {
  return sql`
update operator_jobs set
  state = ${state}, result = ${result}, failure = ${failure}, ended_at = ${now}, leased_until = null,
  done = case
    when total = 0 then done
    else (select count(*) from operator_job_rows where job_id = ${id} and outcome is not null)
  end
where id = ${id} and state = 'RUNNING'`;
}

/** Cancels a job: a waiting job at once, a running job after its current row. */
export function cancelJobRow(id: number, now: Date): Sql {
  return sql`
update operator_jobs set
  asked_to_cancel = true,
  state = case when state = 'WAITING' then 'CANCELED' else state end,
  ended_at = case when state = 'WAITING' then ${now} else ended_at end
where id = ${id} and state in ('WAITING', 'RUNNING') returning *`;
}

/** Lists the rows that are not done. */
export function listOpenRows(id: number, limit: number): Sql {
  return sql`
select number, subject from operator_job_rows
where job_id = ${id} and outcome is null order by number limit ${limit}`;
}

/** Locks a row, so that two processes never work on it. Returns no row if the row is done. */
export function lockJobRow(id: number, number: number): Sql {
  return sql`
select subject from operator_job_rows
where job_id = ${id} and number = ${number} and outcome is null for update`;
}

export function endJobRow(id: number, number: number, outcome: string, message: string | null): Sql {
  return sql`
update operator_job_rows set outcome = ${outcome}, message = ${message}
where job_id = ${id} and number = ${number}`;
}

export function listJobResults(id: number, after: number, limit: number): Sql {
  return sql`
select number, subject, outcome, message from operator_job_rows
where job_id = ${id} and number > ${after} order by number limit ${limit}`;
}
