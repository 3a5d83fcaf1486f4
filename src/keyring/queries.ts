import { type Sql, sql } from '../db/sql.ts';

/** Lists the keys that the database knows, except dropped ones. */
export const KNOWN = sql`
  select key_id, check_value, superseded_at from keyring_keys where dropped_at is null`;

/** Lists the keys in use, oldest first. */
export const IN_USE = sql`
select key_id, check_value, superseded_at from keyring_keys
where activation is not null and retired_at is null order by activation`;

/** Lists the keys in use and keeps them in use until the transaction ends. A new key has to wait for it. */
export const HOLD_IN_USE = sql`select key_id, check_value from hold_key_ring()`;

/** `KNOWN` before the migrations, of any schema version: `dropped_at` may not exist yet. */
export const KNOWN_BEFORE = sql`
select key_id, check_value from scrip.keyring_keys k where to_jsonb(k) ->> 'dropped_at' is null`;

export const FIND_KEY_RING = sql`select to_regclass('scrip.keyring_keys') is not null as there`;

export function insertFirstKey(keyId: string, check: Uint8Array): Sql {
  return sql`
insert into keyring_keys (key_id, check_value, activation) values (${keyId}, ${check}, 1)
on conflict do nothing`;
}

export function insertRouting(check: Uint8Array): Sql {
  return sql`insert into routing (check_value) values (${check}) on conflict do nothing`;
}

export const ROUTING = sql`select check_value from routing`;

export function listNewestVouchers(count: number): Sql {
  return sql`select serial_number, sealed from vouchers order by serial_number desc limit ${count}`;
}
