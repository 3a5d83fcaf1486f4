import { type Sql, sql } from '../db/sql.ts';

/** Whether a database holds the schema of Scrip, in any version. */
export function findSchema(): Sql {
  return sql`select to_regclass('scrip.migrations') is not null as found`;
}

export function findAnyMerchant(): Sql {
  return sql`select exists (select from merchants) as found`;
}

/** A row only where the database holds neither merchants nor movements. */
export function isEmpty(): Sql {
  return sql`
select 1 as empty where not exists (select from merchants) and not exists (select from journal)
  and not exists (select from book_days)`;
}

/** How much history there is: the movements, and the last closed day. */
export function findHistory(): Sql {
  return sql`
select (select count(*)::integer from journal) as movements,
  (select max(day)::text from book_closings) as until`;
}
