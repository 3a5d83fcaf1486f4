import { type Sql, sql } from '../db/sql.ts';

/** How often an actor did something since a time, counted up to a limit. */
export function countSince(action: string, kind: string, id: string, since: Date, most: number): Sql {
  return sql`
select count(*)::int as count from (
  select from audit where occurred_at > ${since} and action = ${action} and actor_kind = ${kind}
    and actor_id = ${id} limit ${most}
) a`;
}
