import { type Sql, sql } from '../db/sql.ts';

export function listSealed(after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed, code_key, pin_key from vouchers where serial_number > ${after} order by serial_number limit ${count}`;
}

/** All vouchers, or those up to a serial number. */
export function countVouchers(to: bigint | null): Sql {
  return sql`select count(*) as vouchers from vouchers where ${to}::bigint is null or serial_number <= ${to}`;
}

/**
 * Puts vouchers under another key, in one statement that locks them in the order in which every statement does, for as long as
 * it takes. One that was sealed anew by somebody else since it was read stays as it is. Parameters are columns of equal length.
 */
export function updateSealed(columns: {
  readonly serials: string;
  readonly before: string;
  readonly sealed: string;
  readonly codeKeys: string;
  readonly pinKeys: string;
}): Sql {
  return sql`
with due as materialized (
  select serial_number, sealed from vouchers where serial_number = any (${columns.serials}::bigint[])
  order by serial_number for update
)
update vouchers v set sealed = n.sealed, code_key = n.code_key, pin_key = n.pin_key, version = v.version + 1
from due d
join unnest(${columns.serials}::bigint[], ${columns.before}::bytea[], ${columns.sealed}::bytea[], ${columns.codeKeys}::uuid[],
  ${columns.pinKeys}::uuid[]) as n (serial_number, before, sealed, code_key, pin_key)
  on n.serial_number = d.serial_number and n.before = d.sealed
where v.serial_number = d.serial_number
returning v.serial_number`;
}

/** How many of a page of vouchers are sealed under which key, and where the page ends. */
export function countPage(after: bigint, count: number): Sql {
  return sql`
select convert_from(substring(p.sealed from 2 for get_byte(p.sealed, 0)), 'LATIN1') as key_id, count(*) as vouchers,
  max(p.serial_number) as last
from (select serial_number, sealed from vouchers where serial_number > ${after} order by serial_number limit ${count}) p
group by 1`;
}

export function findProgress(keyId: string): Sql {
  return sql`select resealed_to from key_rotations where key_id = ${keyId}`;
}

export function insertProgress(keyId: string, now: Date): Sql {
  return sql`insert into key_rotations (key_id, started_at) values (${keyId}, ${now}) on conflict do nothing`;
}

export function setProgress(keyId: string, resealedTo: bigint): Sql {
  return sql`update key_rotations set resealed_to = greatest(resealed_to, ${resealedTo}) where key_id = ${keyId}`;
}

export function endProgress(keyId: string, now: Date): Sql {
  return sql`update key_rotations set finished_at = coalesce(finished_at, ${now}) where key_id = ${keyId}`;
}
