import type { HotStatement } from '../db/sql.ts';

/** Decides and books a list of redemptions: sql/006-redeem.sql, the heart of the program. */
export const REDEEM: HotStatement = {
  name: 'redeem',
  text: 'select * from redeem($1, $2, $3, $4, $5, $6, $7, $8, $9)',
};
