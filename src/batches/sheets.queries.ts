import { type Sql, sql } from '../db/sql.ts';

/** Sealed sheets that were ordered. @param salt of their passphrase */
export function insertSheets(order: {
  readonly batchId: number;
  readonly orderedBy: number;
  readonly name: string;
  readonly reason: string | null;
  readonly salt: Buffer;
  readonly now: Date;
  readonly expiresAt: Date;
}): Sql {
  const { batchId, orderedBy, name, reason, salt, now, expiresAt } = order;
  return sql`
insert into batch_sheets (batch_id, ordered_by, name, reason, salt, ordered_at, expires_at)
values (${batchId}, ${orderedBy}, ${name}, ${reason}, ${salt}, ${now}, ${expiresAt}) returning id`;
}

/** The newest sheets of a batch. */
export function listSheets(batchId: number, limit: number): Sql {
  return sql`
select id, ordered_by, name, reason, ordered_at, expires_at from batch_sheets
where batch_id = ${batchId} order by id desc limit ${limit}`;
}

export function findSheets(id: number): Sql {
  return sql`
select s.id, s.ordered_by, s.name, s.reason, s.salt, s.ordered_at, s.expires_at, b.transaction_id
from batch_sheets s join batches b on b.id = s.batch_id where s.id = ${id}`;
}
