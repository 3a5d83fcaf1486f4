import { type Sql, sql } from '../db/sql.ts';

export function listRingKeys(): Sql {
  return sql`
select k.key_id, k.activation, k.first_used_at, k.superseded_at, k.retired_at, k.dropped_at
from keyring_keys k order by k.activation nulls last, k.key_id`;
}

/** One changes the key ring at a time, its file included, until its transaction ends. The number is this lock's own. */
export function lockKeyRing(): Sql {
  return sql`select pg_advisory_xact_lock(7311990003)`;
}

/** Ends the time of the key that seals. The lock of the key ring is held: every transaction that seals under it has ended. */
export function supersede(now: Date): Sql {
  return sql`
update keyring_keys set superseded_at = ${now}
where activation is not null and superseded_at is null returning key_id, activation`;
}

export function insertRingKey(keyId: string, check: Uint8Array, activation: number): Sql {
  return sql`insert into keyring_keys (key_id, check_value, activation) values (${keyId}, ${check}, ${activation})`;
}

/** Nothing is looked up any more under the keys before the newest. */
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
