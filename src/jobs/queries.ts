import { type Sql, sql } from '../db/sql.ts';

/**
 * The number of attempts before a job is given up. The delays grow exponentially, so the last attempt is made
 * after some days.
 */
const ATTEMPTS_MAX = 25;

export function addJob(task: string, batchId: number, mode: 'replace' | 'preserve_run_at'): Sql {
  return sql`
select from graphile_worker.add_job(
  ${task},
  json_build_object('batchId', ${batchId}::int),
  job_key => ${`${task}-${batchId}`},
  max_attempts => ${ATTEMPTS_MAX}::int,
  job_key_mode => ${mode})`;
}
