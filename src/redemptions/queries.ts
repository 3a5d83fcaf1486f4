import { type HotStatement, type Sql, sql } from '../db/sql.ts';

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

export type Correction = {
  readonly bucket: number;
  readonly merchantId: number;
  readonly originalId: string;
  readonly amountUnits: bigint;
  /** The ids of the reversal, the new redemption, and the movement to a voucher that replaced this one. */
  readonly ids: readonly [string, string, string];
  readonly now: Date;
};

/** Updates one redemption, in a separate transaction. */
export function correctOne({ bucket, merchantId, originalId, amountUnits, ids, now }: Correction): Sql {
  return sql`
select * from update_redemptions(${bucket}, array[${merchantId}::int], null, array[${originalId}::uuid],
  array[${amountUnits}::bigint], array[${ids[0]}::uuid], array[${ids[1]}::uuid], array[${ids[2]}::uuid],
  ${now})`;
}
