import { type Sql, sql } from '../db/sql.ts';

export function listRingKeys(): Sql {
  return sql`
select k.key_id, k.activation, k.first_used_at, k.superseded_at, k.retired_at, k.dropped_at
from keyring_keys k order by k.activation nulls last, k.key_id`;
}

/**
 * Lets one process at a time change the key ring and its file, until its transaction ends. No other lock has
 * this number.
 */
export function lockKeyRing(): Sql {
  return sql`select pg_advisory_xact_lock(7311990003)`;
}

/**
 * Ends the use of the key that seals. The caller holds the lock, so every transaction that sealed under this
 * key has ended.
 */
export function supersede(now: Date): Sql {
  return sql`
update keyring_keys set superseded_at = ${now}
where activation is not null and superseded_at is null returning key_id, activation`;
}

export function insertRingKey(keyId: string, check: Uint8Array, activation: number): Sql {
  return sql`
    insert into keyring_keys (key_id, check_value, activation) values (${keyId}, ${check}, ${activation})`;
}

/** Ends the look-up of vouchers under the keys before the newest. */
export function retireOlder(newest: string, now: Date): Sql {
  return sql`
update keyring_keys set retired_at = ${now}
where retired_at is null and activation < (select n.activation from keyring_keys n where n.key_id = ${newest})
returning key_id`;
}

export function dropRetired(keyId: string, now: Date): Sql {
  return sql`
update keyring_keys set dropped_at = ${now}
where key_id = ${keyId} and retired_at is not null and dropped_at is null returning key_id`;
}

export function listSealed(bucket: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed, code_key, pin_key from vouchers
where bucket = ${bucket} and serial_number > ${after} order by serial_number limit ${count}`;
}

/**
 * Writes vouchers of a bucket that were sealed under another key (sql/012-vouchers.sql). The parameters are
 * columns of equal length.
 */
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
select reseal_vouchers(${bucket}, ${serials}::bigint[], ${before}::bytea[], ${sealed}::bytea[],
  ${codeKeys}::uuid[], ${pinKeys}::uuid[])`;
}

/** Counts the vouchers of a page by the key that sealed them, and returns the end of the page. */
export function countPage(bucket: number, after: bigint, count: number): Sql {
  return sql`
select convert_from(substring(p.sealed from 2 for get_byte(p.sealed, 0)), 'LATIN1') as key_id,
  count(*) as vouchers, max(p.serial_number) as last
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
insert into keyring_rotations (key_id, bucket, started_at) values (${keyId}, ${bucket}, ${now})
on conflict do nothing`;
}

export function setProgress(keyId: string, bucket: number, resealedTo: bigint): Sql {
  return sql`
update keyring_rotations set resealed_to = greatest(resealed_to, ${resealedTo})
where key_id = ${keyId} and bucket = ${bucket}`;
}

export function endProgress(keyId: string, now: Date): Sql {
  return sql`
    update keyring_rotations set finished_at = coalesce(finished_at, ${now}) where key_id = ${keyId}`;
}

/**
 * Estimates the number of vouchers from the statistics. Counting a billion takes longer than the time limit
 * of a statement.
 */
export const estimateVouchers = sql`
select greatest(reltuples, 0)::bigint as vouchers from pg_class where oid = 'vouchers'::regclass`;

/** Lists every secret, including those of removed endpoints, so that all dependencies on a key are found. */
export function listSecrets(): Sql {
  return sql`select id, secret, previous_secret from webhook_endpoints order by id`;
}

export function lockSecrets(id: number): Sql {
  return sql`select id, secret, previous_secret from webhook_endpoints where id = ${id} for update`;
}

export function setSecrets(id: number, secret: Buffer, previous: Buffer | null): Sql {
  return sql`update webhook_endpoints set secret = ${secret}, previous_secret = ${previous} where id = ${id}`;
}

/** Lists the secret of every authenticator app. */
export function listTotpSecrets(): Sql {
  return sql`select id, totp_secret as secret from users where totp_secret is not null order by id`;
}

export function lockTotpSecret(userId: number): Sql {
  return sql`
    select id, totp_secret as secret from users where id = ${userId} and totp_secret is not null for update`;
}

export function setTotpSecret(userId: number, secret: Buffer): Sql {
  return sql`update users set totp_secret = ${secret} where id = ${userId}`;
}
