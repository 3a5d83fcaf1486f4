import { type Sql, sql } from '../db/sql.ts';

export function listSealed(bucket: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed, code_key, pin_key from vouchers
where bucket = ${bucket} and serial_number > ${after} order by serial_number limit ${count}`;
}

/** Puts vouchers of a bucket under another key (sql/012-vouchers.sql). Parameters are columns of equal length. */
export function resealVouchers(
  bucket: number,
  columns: {
    readonly serials: string;
    readonly before: string;
    readonly sealed: string;
    readonly codeKeys: string;
    readonly pinKeys: string;
  },
): Sql {
  const { serials, before, sealed, codeKeys, pinKeys } = columns;
  return sql`
select reseal_vouchers(${bucket}, ${serials}::bigint[], ${before}::bytea[], ${sealed}::bytea[], ${codeKeys}::uuid[], ${pinKeys}::uuid[])`;
}

/** How many of a page of vouchers are sealed under which key, and where the page ends. */
export function countPage(bucket: number, after: bigint, count: number): Sql {
  return sql`
select convert_from(substring(p.sealed from 2 for get_byte(p.sealed, 0)), 'LATIN1') as key_id, count(*) as vouchers,
  max(p.serial_number) as last
from (
  select serial_number, sealed from vouchers
  where bucket = ${bucket} and serial_number > ${after} order by serial_number limit ${count}
) p
group by 1`;
}

export function findProgress(keyId: string, bucket: number): Sql {
  return sql`select resealed_to from keyring_rotations where key_id = ${keyId} and bucket = ${bucket}`;
}

export function insertProgress(keyId: string, bucket: number, now: Date): Sql {
  return sql`
insert into keyring_rotations (key_id, bucket, started_at) values (${keyId}, ${bucket}, ${now}) on conflict do nothing`;
}

export function setProgress(keyId: string, bucket: number, resealedTo: bigint): Sql {
  return sql`
update keyring_rotations set resealed_to = greatest(resealed_to, ${resealedTo}) where key_id = ${keyId} and bucket = ${bucket}`;
}

export function endProgress(keyId: string, now: Date): Sql {
  return sql`update keyring_rotations set finished_at = coalesce(finished_at, ${now}) where key_id = ${keyId}`;
}

/** How many vouchers there are, as the statistics have it: to count a billion takes longer than a statement may. */
export const estimateVouchers = sql`
select greatest(reltuples, 0)::bigint as vouchers from pg_class where oid = 'vouchers'::regclass`;
