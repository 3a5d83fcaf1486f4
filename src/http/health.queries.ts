import { type Sql, sql } from '../db/sql.ts';

/** Answers if anything does. */
export function ask(): Sql {
  return sql`select 1`;
}
