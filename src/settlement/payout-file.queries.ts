import { type Sql, sql } from '../db/sql.ts';

/** The records of payout files. */

export type PayoutFileRow = {
  id: number;
  format: 'pain001' | 'csv';
  digest: Buffer;
  again_because: string | null;
  made_by: string;
  made_at: Date;
  /** The merchant, the year and the number of each settlement. */
  settlements: readonly { merchantId: number; year: number; number: number }[];
};

export const takeFileId = sql`select nextval(pg_get_serial_sequence('payout_files', 'id'))::integer as id`;

export type NewPayoutFile = {
  readonly id: number;
  readonly format: 'pain001' | 'csv';
  readonly digest: Buffer;
  readonly againBecause: string | null;
  readonly by: string;
  readonly now: Date;
  readonly settlementIds: readonly number[];
};

export function insertPayoutFile({ id, format, digest, againBecause, by, now }: NewPayoutFile): Sql {
  return sql`
insert into payout_files (id, format, digest, again_because, made_by, made_at) overriding system value
values (${id}, ${format}, ${digest}, ${againBecause}, ${by}, ${now})`;
}

/** Records the settlements of a file, each of which it pays from now on. */
export function insertFileSettlements({ id, settlementIds }: NewPayoutFile): Sql {
  return sql`
with named as (
  update settlements set file_id = ${id} where id = any (${settlementIds}::int[]) returning id
)
insert into payout_file_settlements (file_id, settlement_id) select ${id}, n.id from named n`;
}

/** Lists files before an id, newest first. */
export function listPayoutFiles(before: number | null, count: number): Sql {
  return sql`
select f.id, f.format, f.digest, f.again_because, f.made_by, f.made_at,
  (
    select json_agg(json_build_object('merchantId', s.merchant_id, 'year', s.year, 'number', s.number) order by s.id)
    from payout_file_settlements p join settlements s on s.id = p.settlement_id where p.file_id = f.id
  ) as settlements
from payout_files f where (${before}::integer is null or f.id < ${before}) order by f.id desc limit ${count}`;
}
