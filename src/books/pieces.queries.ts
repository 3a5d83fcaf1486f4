import { type Sql, sql } from '../db/sql.ts';

/** Counts the rows of the journal in an interval, at most up to a limit. */
export function countRows(from: Date, to: Date, most: number): Sql {
  return sql`
select count(*) as count from (
  select 1 from journal where id >= id_floor(${from}::timestamptz) and id < id_floor(${to}::timestamptz)
  limit ${most}
) r`;
}

/** Returns the number of the next transaction that writes. */
export function countTransactions(): Sql {
  return sql`select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as count`;
}
