import { type Sql, sql } from '../db/sql.ts';

/** Adds a job, unless the same one is open. */
export function addJob(task: string, subject: string, delayMs: number): Sql {
  return sql`
insert into jobs (task, subject, created_at, due_at)
values (${task}, ${subject}, now(), now() + ${delayMs} * interval '1 millisecond')
on conflict (task, subject) where state in ('WAITING', 'RUNNING') do nothing`;
}

/**
 * Takes the job of these tasks that is due and has waited longest, or whose process has died. Returns no row
 * if there is none.
 * @param id only this job
 */
export function takeJob(tasks: readonly string[], id: number | null, leaseMs: number): Sql {
  return sql`
update jobs set
  state = 'RUNNING', started_at = coalesce(started_at, now()), leased_until = now() + ${leaseMs} * interval '1 millisecond'
where id = (
  select id from jobs
  where state in ('WAITING', 'RUNNING') and task = any(${tasks}::text[])
    and due_at <= now() and (leased_until is null or leased_until < now())
    and (${id}::int is null or id = ${id})
  order by due_at limit 1 for update skip locked
)
returning *`;
}

export function extendLease(id: number, leaseMs: number): Sql {
  return sql`update jobs set leased_until = now() + ${leaseMs} * interval '1 millisecond' where id = ${id} and state = 'RUNNING'`;
}

/** Ends the lease of a job that goes on later. */
export function postponeJob(id: number, delayMs: number, tries: number): Sql {
  return sql`
update jobs set
  state = 'WAITING', leased_until = null, due_at = now() + ${delayMs} * interval '1 millisecond', tries = ${tries}
where id = ${id} and state = 'RUNNING'`;
}

/** Deletes a job of the service that is done. Nobody asks for its result. */
export function deleteJob(id: number): Sql {
  return sql`delete from jobs where id = ${id}`;
}
