import { type Sql, sql } from '../db/sql.ts';

/** One account of each kind and currency; those that exist stay as they are. */
export function insertAccounts(merchantId: number, currency: string, decimals: number): Sql {
  return sql`
insert into accounts (kind, merchant_id, currency, decimals, balance_minor) values
  ('FUNDING', null, ${currency}, ${decimals}, null),
  ('BREAKAGE', null, ${currency}, ${decimals}, null),
  ('FLOAT', ${merchantId}, ${currency}, ${decimals}, 0),
  ('SETTLEMENT', ${merchantId}, ${currency}, ${decimals}, null)
on conflict do nothing`;
}
