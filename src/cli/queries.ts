import { type Sql, sql } from '../db/sql.ts';

/** Returns whether a database contains the schema of Scrip, in any version. */
export function findSchema(): Sql {
  return sql`select to_regclass('scrip.migrations') is not null as found`;
}

export function findAnyMerchant(): Sql {
  return sql`select exists (select from merchants) as found`;
}

/** Returns a row only if the database contains neither merchants nor movements. */
export function isEmpty(): Sql {
  return sql`
select 1 as empty
where not exists (select from merchants) and not exists (select from journal)
  and not exists (select from book_days)`;
}

/** Returns the size of the history: the number of movements, and the last closed day. */
export function findHistory(): Sql {
  return sql`
select (select count(*)::integer from journal) as movements,
  (select max(day)::text from book_closings) as until`;
}
