import type { HotStatement } from '../db/sql.ts';

/** Decides and books a list of activations: sql/007-activate.sql. */
export const ACTIVATE: HotStatement = {
  name: 'activate',
  text: 'select * from activate($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)',
};
