import { type HotStatement, type Sql, sql } from '../db/sql.ts';

/** The functions of sql/010-balance.sql. */
export const READ_BALANCES: HotStatement = {
  name: 'read-balances',
  text: 'select * from read_balances($1, $2, $3, $4, $5, $6)',
};

export const CHECK_PINS: HotStatement = {
  name: 'check-pins',
  text: 'select * from check_pins($1, $2, $3, $4)',
};

export function readHistory(bucket: number, merchantId: number, serialNumber: bigint, entries: number): Sql {
  return sql`select * from read_history(${bucket}, ${merchantId}, ${serialNumber}, ${entries})`;
}
