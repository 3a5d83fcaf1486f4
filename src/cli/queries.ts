import { type Sql, sql } from '../db/sql.ts';

/** Whether a database holds the schema of Scrip, in any version. */
export function findSchema(): Sql {
  return sql`select to_regclass('scrip.migrations') is not null as found`;
}

export function findAnyMerchant(): Sql {
  return sql`select exists (select from merchants) as found`;
}
