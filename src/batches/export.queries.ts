import { type Sql, sql } from '../db/sql.ts';

export type NewExport = {
  readonly format: 'csv' | 'pdf';
  /** Who asks for it. */
  readonly by: string;
  readonly reason: string | null;
};

/** Records an export with the number of vouchers that it is going to hold: of a completed batch, as many as were ordered. */
export function insertExport(batchId: number, { format, by, reason }: NewExport, now: Date): Sql {
  return sql`
insert into batch_exports (batch_id, format, exported_by, reason, vouchers, begun_at)
select id, ${format}, ${by}, ${reason}, quantity, ${now} from batches where id = ${batchId}
returning id, vouchers`;
}

export function insertExportEnd(exportId: number, complete: boolean, vouchers: number, now: Date): Sql {
  return sql`
insert into batch_export_ends (export_id, complete, vouchers, ended_at)
values (${exportId}, ${complete}, ${vouchers}, ${now})`;
}

export function listExportRows(batchId: number, most: number): Sql {
  return sql`
select e.id, e.format, e.exported_by, e.reason, e.begun_at, n.ended_at, n.complete,
  coalesce(n.vouchers, e.vouchers) as vouchers
from batch_exports e left join batch_export_ends n on n.export_id = e.id
where e.batch_id = ${batchId} order by e.id desc limit ${most}`;
}

export function findLastExport(batchId: number): Sql {
  return sql`
select count(*)::int as exports, max(begun_at) as last from batch_exports where batch_id = ${batchId}`;
}

/** What is printed of a page of vouchers beside their codes. The value of one that is not active yet is its batch's. */
export function listFaces(batchId: number, first: bigint, last: bigint): Sql {
  return sql`
select v.serial_number, v.expires_at, b.decimals,
  case when v.activated_at is null then b.value_minor else v.balance_minor end as value_minor
from vouchers v join batches b on b.id = v.batch_id
where v.batch_id = ${batchId} and v.serial_number between ${first} and ${last} and v.closed is null`;
}
