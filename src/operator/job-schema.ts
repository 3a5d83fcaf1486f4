import Type, { type Static } from 'typebox';
import type { Actor } from '../context.ts';
import { Count, Id, NullableText, NullableTime, Text, Time, Word } from '../schema.ts';
import type { JobRow } from './jobs.ts';

export const JobSchema = Type.Object({
  id: Id('job'),
  operation: Text,
  state: Word(['WAITING', 'RUNNING', 'COMPLETED', 'CANCELED', 'FAILED'] as const),
  total: Type.Integer({ minimum: 0, description: 'Its rows; 0 for a job without rows.' }),
  done: Count,
  failed: Type.Integer({ minimum: 0, description: 'Rows that were declined.' }),
  createdBy: Text,
  createdAt: Time,
  startedAt: NullableTime,
  endedAt: NullableTime,
  result: Type.Unsafe<unknown>({ description: 'Of a job without rows; null until it is done.' }),
  failure: NullableText,
});

export type Job = Static<typeof JobSchema>;

/** Returns a job as every door shows it. */
export function toJobJson(row: JobRow): Job {
  return {
    id: String(row.id),
    operation: row.task,
    state: row.state,
    total: row.total,
    done: row.done,
    failed: row.failed,
    createdBy: (JSON.parse(row.actor) as Actor).name,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    result: row.result === null ? null : JSON.parse(row.result),
    failure: row.failure,
  };
}
