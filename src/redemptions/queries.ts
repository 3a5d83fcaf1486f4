import type { HotStatement } from '../db/sql.ts';

/** Decides and books a list of redemptions: sql/006-redeem.sql, the heart of the program. */
export const REDEEM: HotStatement = {
  name: 'redeem',
  text: 'select * from redeem($1, $2, $3, $4, $5, $6, $7, $8, $9)',
};

/** The functions of sql/009-update-redemption.sql. */
export const UPDATE_REDEMPTIONS: HotStatement = {
  name: 'update-redemptions',
  text: 'select * from update_redemptions($1, $2, $3, $4, $5, $6, $7, $8, $9)',
};

export const FIND_UPDATES: HotStatement = {
  name: 'find-updates',
  text: 'select * from find_updates($1, $2, $3, $4)',
};
