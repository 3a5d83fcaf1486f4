import { type Sql, sql } from '../db/sql.ts';

/** The restrictions of a key; null means no restriction. */
export type KeyTerms = {
  readonly scopes: readonly string[] | null;
  readonly networks: readonly string[] | null;
  readonly expiresAt: Date | null;
  readonly perSecond: number | null;
  readonly burst: number | null;
};

/** Keeps other transactions from adding keys to a merchant until this one ends. */
export function holdKeys(merchantId: number): Sql {
  return sql`select from merchants where id = ${merchantId} for no key update`;
}

/** Counts the keys of a merchant that work. */
export function countKeys(merchantId: number, now: Date): Sql {
  return sql`
select count(*)::int as count from api_keys
where merchant_id = ${merchantId} and revoked_at is null and (expires_at is null or expires_at > ${now})`;
}

export function insertKey(
  keyId: string,
  merchantId: number,
  secretHash: Buffer,
  terms: KeyTerms,
  now: Date,
  isOfMerchant: boolean,
): Sql {
  return sql`
insert into api_keys (id, merchant_id, secret_hash, scopes, networks, expires_at, calls_per_second,
  calls_burst, created_at, is_of_merchant)
values (${keyId}, ${merchantId}, ${secretHash}, ${terms.scopes}::text[], ${terms.networks}::text[],
  ${terms.expiresAt}, ${terms.perSecond}, ${terms.burst}, ${now}, ${isOfMerchant})`;
}

export function revokeKeyRow(keyId: string, merchantId: number | null, now: Date): Sql {
  return sql`
update api_keys set revoked_at = coalesce(revoked_at, ${now})
where id = ${keyId} and (${merchantId}::int is null or merchant_id = ${merchantId}) returning revoked_at`;
}

export function lockKey(keyId: string): Sql {
  return sql`
select merchant_id, scopes, networks, expires_at, revoked_at, rotated_to, calls_per_second, calls_burst
from api_keys where id = ${keyId} for update`;
}

/** Ends the old key of a rotation after the overlap, or earlier if it would have expired anyway. */
export function expireRotated(keyId: string, rotatedTo: string, until: Date): Sql {
  return sql`
update api_keys set
  rotated_to = ${rotatedTo}, expires_at = least(coalesce(expires_at, 'infinity'), ${until}::timestamptz)
where id = ${keyId} returning expires_at`;
}

export function setLimit(keyId: string, perSecond: number | null, burst: number | null): Sql {
  return sql`update api_keys set calls_per_second = ${perSecond}, calls_burst = ${burst} where id = ${keyId}`;
}

/** Lists the keys of a merchant, or one key, with their counts of a day and their last use. */
export function listKeyRows(merchantId: number | null, keyId: string | null, day: string): Sql {
  return sql`
select k.id, k.merchant_id, k.is_of_merchant, k.created_at, k.revoked_at, k.expires_at, k.scopes,
  k.networks, k.rotated_to, k.calls_per_second, k.calls_burst, coalesce(d.calls, 0) as calls,
  coalesce(d.guesses, 0) as guesses, d.blocked_at, l.last_call_at
from api_keys k
left join api_key_days d on d.key_id = k.id and d.day = ${day}::date
left join lateral (
  select coalesce(n.last_call_at, n.day) as last_call_at from api_key_days n
  where n.key_id = k.id and (n.calls > 0 or n.last_call_at is not null) order by n.day desc limit 1
) l on true
where (${merchantId}::int is null or k.merchant_id = ${merchantId})
  and (${keyId}::text is null or k.id = ${keyId})
order by k.created_at, k.id limit 1000`;
}
