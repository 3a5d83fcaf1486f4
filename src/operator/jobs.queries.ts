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
  insert into jobs (task, input, actor, total, created_at)
  values (${operation}, ${input}, ${actor}, ${subjects.length}, ${now}) returning *
), rows as (
  insert into job_rows (job_id, number, subject)
  select job.id, s.number, s.subject
  from job cross join unnest(${subjects}::text[]) with ordinality s (subject, number)
)
select * from job`;
}

export function findJobRow(id: number): Sql {
  return sql`select * from jobs where id = ${id} and actor is not null`;
}

/** Lists operators' jobs before an id, newest first. */
export function listJobRows(before: number | null, limit: number): Sql {
  return sql`
select * from jobs
where actor is not null and (${before}::int is null or id < ${before})
order by id desc limit ${limit}`;
}

/** Counts the rows of a job. Returns `canceled` if it is to be canceled. */
export function countJobRows(id: number): Sql {
  return sql`
update jobs j set done = c.done, failed = c.failed
from (
  select count(*) filter (where outcome is not null)::int as done,
    count(*) filter (where outcome is not null and outcome <> 'ok')::int as failed
  from job_rows where job_id = ${id}
) c
where j.id = ${id}
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
update jobs set
  state = ${state}, result = ${result}, failure = ${failure}, ended_at = ${now}, leased_until = null,
  done = case
    when total = 0 then done
    else (select count(*) from job_rows where job_id = ${id} and outcome is not null)
  end
where id = ${id} and state = 'RUNNING'`;
}

/** Cancels a job: a waiting job at once, a running job after its current row. */
export function cancelJobRow(id: number, now: Date): Sql {
  return sql`
update jobs set
  asked_to_cancel = true,
  state = case when state = 'WAITING' then 'CANCELED' else state end,
  ended_at = case when state = 'WAITING' then ${now} else ended_at end
where id = ${id} and actor is not null and state in ('WAITING', 'RUNNING') returning *`;
}

/** Lists the rows that are not done. */
export function listOpenRows(id: number, limit: number): Sql {
  return sql`
select number, subject from job_rows
where job_id = ${id} and outcome is null order by number limit ${limit}`;
}

/** Locks a row, so that two processes never work on it. Returns no row if the row is done. */
export function lockJobRow(id: number, number: number): Sql {
  return sql`
select subject from job_rows
where job_id = ${id} and number = ${number} and outcome is null for update`;
}

export function endJobRow(id: number, number: number, outcome: string, message: string | null): Sql {
  return sql`
update job_rows set outcome = ${outcome}, message = ${message}
where job_id = ${id} and number = ${number}`;
}

export function listJobResults(id: number, after: number, limit: number): Sql {
  return sql`
select number, subject, outcome, message from job_rows
where job_id = ${id} and number > ${after} order by number limit ${limit}`;
}
