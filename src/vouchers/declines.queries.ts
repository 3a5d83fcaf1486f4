import { type Sql, sql } from '../db/sql.ts';

/** Adds declines, columns of equal length; the voucher is found by one of two keys of its code, or given. */
export function insertDeclines(columns: {
  readonly ids: string;
  readonly serials: string;
  readonly codeKeys: string;
  readonly olderKeys: string;
  readonly merchants: string;
  readonly keyIds: string;
  readonly operations: string;
  readonly codes: string;
  readonly amounts: string;
  readonly references: string;
}): Sql {
  const { ids, serials, codeKeys, olderKeys, merchants, keyIds, operations, codes, amounts, references } =
    columns;
  return sql`
with found as materialized (
  select r.code_key, r.serial_number from vouchers r
  where r.code_key = any (${codeKeys}::uuid[] || ${olderKeys}::uuid[])
)
insert into declines (id, serial_number, merchant_id, key_id, operation, code, amount_units, reference)
select u.id, coalesce(u.serial_number, v.serial_number), u.merchant_id, u.key_id, u.operation, u.code,
  u.amount_units, u.reference
from unnest(${ids}::uuid[], ${serials}::bigint[], ${codeKeys}::uuid[], ${olderKeys}::uuid[],
  ${merchants}::int[], ${keyIds}::text[],
  ${operations}::text[], ${codes}::text[], ${amounts}::bigint[], ${references}::text[])
  as u (id, serial_number, code_key, older_key, merchant_id, key_id, operation, code, amount_units, reference)
left join found v on v.code_key in (u.code_key, u.older_key)`;
}

/** Adds to the counts of days, in columns of equal length. */
export function addDeclineCounts(days: string, codes: string, counts: string): Sql {
  return sql`
insert into decline_counts as c (day, code, declines)
select u.day, u.code, u.declines
from unnest(${days}::date[], ${codes}::text[], ${counts}::bigint[]) as u (day, code, declines)
order by u.day, u.code
on conflict (day, code) do update set declines = c.declines + excluded.declines`;
}

/** How many requests were declined from one day to another, by code, the most frequent first. */
export function sumDeclineCounts(from: Date, to: Date): Sql {
  return sql`
select code, sum(declines)::bigint as declines from decline_counts
where day >= (${from}::timestamptz at time zone 'UTC')::date
  and day <= (${to}::timestamptz at time zone 'UTC')::date
group by code order by declines desc, code`;
}

/** The newest declines of a voucher. */
export function listVoucherDeclines(serialNumber: bigint, limit: number): Sql {
  return sql`
select id, merchant_id, operation, code, amount_units, reference from declines
where serial_number = ${serialNumber} order by id desc limit ${limit}`;
}

/** A page of declines, newest first, before an id; of a merchant or of all, of a voucher or of all. */
export function listDeclineRows(
  merchantId: number | null,
  serialNumber: bigint | null,
  before: string,
  limit: number,
): Sql {
  const values: unknown[] = [before, limit];
  const conditions = ['id < $1::uuid'];
  if (merchantId !== null) conditions.push(`merchant_id = $${values.push(merchantId)}`);
  if (serialNumber !== null) conditions.push(`serial_number = $${values.push(serialNumber)}`);
  const columns = 'id, serial_number, merchant_id, key_id, operation, code, amount_units, reference';
  return {
    text: `select ${columns} from declines where ${conditions.join(' and ')} order by id desc limit $2`,
    values,
  };
}

/** Partitions of the months from one to another (sql/021-declines.sql). */
export function createDeclinePartitions(first: Date, last: Date): Sql {
  return sql`select create_decline_partitions(${first}, ${last}) as made`;
}

export function dropOldDeclines(before: Date): Sql {
  return sql`select drop_old_declines(${before}) as month`;
}
