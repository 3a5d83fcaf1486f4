import { type HotStatement, type Sql, sql } from '../db/sql.ts';

const KEY = `
  k.id as key_id, k.revoked_at is not null as revoked, k.secret_hash, m.id as merchant_id, m.name,
  m.permissions, m.opaque, m.suspended_at is not null as suspended, m.default_product_id,
  d.blocked_at is not null as blocked, k.scopes, k.networks, k.expires_at, k.calls_per_second, k.calls_burst`;

/**
 * Looks up keys. In: $1 a column of key ids; $2 the day. Out: a row for each key that exists and is not
 * revoked.
 */
export const FIND_KEYS: HotStatement = {
  name: 'find-keys',
  text: `
select ${KEY}
from unnest($1::text[]) as a (key_id)
cross join lateral (select * from api_keys where id = a.key_id and revoked_at is null limit 1) k
cross join lateral (select * from merchants where id = k.merchant_id limit 1) m
left join lateral (select blocked_at from api_key_days where key_id = k.id and day = $2::date limit 1) d
  on true`,
};

/**
 * Lists the changes since a read. In: $1 the horizon of the last call, or null; $2 the day; $3 the highest
 * number of rows. Out: at least one row, with the new horizon: the oldest transaction that is still running.
 * Changes by it or a later one are reported again next time, so none is missed, whatever the order of
 * commits.
 */
export const CHANGED_KEYS: HotStatement = {
  name: 'changed-keys',
  text: `
select h.horizon::text as horizon, c.*
from (select pg_snapshot_xmin(pg_current_snapshot()) as horizon) h
left join lateral (
  select ${KEY}
  from (
    select id from api_keys where changed_by >= $1::xid8
    union
    select k.id from merchants m join api_keys k on k.merchant_id = m.id where m.changed_by >= $1::xid8
  ) i
  join api_keys k on k.id = i.id
  join merchants m on m.id = k.merchant_id
  left join api_key_days d on d.key_id = k.id and d.day = $2::date
  limit $3
) c on true`,
};

/** Adds calls to the days of keys. The parameters are columns of equal length. */
export function addCalls(keyIds: string, calls: string, day: string, now: Date): Sql {
  return sql`
insert into api_key_days as d (key_id, day, calls, last_call_at)
select n.key_id, ${day}::date, n.calls, ${now}::timestamptz
from unnest(${keyIds}::text[], ${calls}::bigint[]) as n (key_id, calls)
order by n.key_id
on conflict (key_id, day) do update set
  calls = d.calls + excluded.calls, last_call_at = greatest(d.last_call_at, excluded.last_call_at)`;
}

/** Adds guesses to the days of keys, and returns the new counts. */
export function addGuesses(keyIds: string, day: string): Sql {
  return sql`
insert into api_key_days as d (key_id, day, guesses)
select n.key_id, ${day}::date, count(*) from unnest(${keyIds}::text[]) as n (key_id)
group by n.key_id order by n.key_id
on conflict (key_id, day) do update set guesses = d.guesses + excluded.guesses
returning key_id, guesses - pardoned_guesses as guesses, blocked_at is not null as blocked`;
}

/**
 * Blocks a key with too many guesses: more than `most` in the day, and more than `share` of its calls. A key
 * that another process has just blocked is returned too.
 */
export function blockGuesser(keyId: string, day: string, most: number, share: number, now: Date): Sql {
  return sql`
with blocked as (
  update api_key_days set blocked_at = coalesce(blocked_at, ${now})
  where key_id = ${keyId} and day = ${day}::date
    and guesses - pardoned_guesses > ${most} and guesses - pardoned_guesses > calls * ${share}::float8
  returning guesses, calls, blocked_at = ${now}::timestamptz as first
), changed as (
  update api_keys set changed_by = pg_current_xact_id() where id = ${keyId} and exists (select from blocked)
)
select * from blocked`;
}

export function pardonKey(keyId: string, day: string): Sql {
  return sql`
update api_key_days d set pardoned_guesses = d.guesses, blocked_at = null
from (
  select key_id, day, pardoned_guesses, blocked_at from api_key_days
  where key_id = ${keyId} and day = ${day}::date for update
) b
where d.key_id = b.key_id and d.day = b.day
returning d.pardoned_guesses, b.pardoned_guesses as before_guesses, b.blocked_at as before_blocked_at`;
}

/** Makes the caches of all processes read a key again, after a change in another table. */
export function touchKey(keyId: string): Sql {
  return sql`update api_keys set changed_by = pg_current_xact_id() where id = ${keyId}`;
}

export function insertMerchant(
  name: string,
  permissions: readonly string[],
  opaque: boolean,
  productId: number,
  now: Date,
): Sql {
  return sql`
insert into merchants (name, permissions, opaque, default_product_id, created_at)
values (${name}, ${permissions}, ${opaque}, ${productId}, ${now}) returning *`;
}

export function findMerchantRow(id: number): Sql {
  return sql`
    select m.*, p.code as product
    from merchants m join products p on p.id = m.default_product_id where m.id = ${id}`;
}

export function lockMerchant(id: number): Sql {
  return sql`select from merchants where id = ${id} for update`;
}

export function listMerchantRows(): Sql {
  return sql`
select m.*, p.code as product
from merchants m join products p on p.id = m.default_product_id order by m.id limit 10000`;
}

/** Returns the words of a text, as in the index merchants_by_words. */
const wordsOf = (text: string) =>
  `to_tsvector('simple'::regconfig, regexp_replace(${text}, '[^[:alnum:]]+', ' ', 'g'))`;

/** Lists merchants. @param name beginnings of words of the name, in any case; null for all */
export function listMerchantRowsAfter(after: number, limit: number, name: string | null): Sql {
  if (name === null)
    return sql`
select m.*, p.code as product from merchants m join products p on p.id = m.default_product_id
where m.id > ${after} order by m.id limit ${limit}`;
  return {
    text: `
with found as materialized (
  select m.id from merchants m
  where ${wordsOf('m.name')} @@ (
    select string_agg(quote_literal(w.lexeme) || ':*', ' & ') from unnest(${wordsOf('$1')}) w
  )::tsquery
), page as materialized (
  select f.id from found f where f.id > $2 order by f.id limit $3
)
select m.*, p.code as product from page g
cross join lateral (select r.* from merchants r where r.id = g.id) m
join products p on p.id = m.default_product_id order by m.id`,
    values: [name, after, limit],
  };
}

export function setPermission(id: number, permission: string, allowed: boolean): Sql {
  return sql`
update merchants set permissions = case
  when ${allowed}::boolean then array_append(array_remove(permissions, ${permission}), ${permission})
  else array_remove(permissions, ${permission}) end
where id = ${id} returning id`;
}

/** Suspends a merchant, unless it already is suspended. @param at null: ends the suspension */
export function setSuspended(id: number, at: Date | null): Sql {
  return sql`
update merchants set suspended_at = case
  when ${at}::timestamptz is not null then coalesce(suspended_at, ${at}) end
where id = ${id} returning id`;
}

export type MerchantChange = {
  readonly name: string | null;
  readonly opaque: boolean | null;
  readonly productId: number | null;
};

export function setMerchant(id: number, { name, opaque, productId }: MerchantChange): Sql {
  return sql`
update merchants set
  name = coalesce(${name}, name), opaque = coalesce(${opaque}::boolean, opaque),
  default_product_id = coalesce(${productId}::int, default_product_id)
where id = ${id} returning id`;
}

/** Stores the name that a merchant has until it gets another one. */
export function insertFormerName(id: number, name: string, until: Date): Sql {
  return sql`
insert into merchant_names (merchant_id, until, name)
select id, ${until}, name from merchants where id = ${id} and name <> ${name}
on conflict do nothing`;
}

export function findFinestDecimals(): Sql {
  return sql`select max(decimals) as decimals from products`;
}

export function topUpFloat(accountId: bigint, amountMinor: bigint): Sql {
  return sql`
update floats set balance_minor = balance_minor + ${amountMinor},
  topped_up_minor = balance_minor + ${amountMinor}
where account_id = ${accountId} returning balance_minor, decimals`;
}

export function updateLow(merchantId: number, currency: string, lowMinor: bigint | null): Sql {
  return sql`
update floats f set low_minor = ${lowMinor}
from (
  select account_id, low_minor from floats
  where merchant_id = ${merchantId} and currency = ${currency} for update
) b
where f.account_id = b.account_id
returning f.decimals, b.low_minor as before_minor`;
}

export function listFloatRows(merchantId: number): Sql {
  return sql`
    select currency, decimals, balance_minor from floats where merchant_id = ${merchantId} order by currency`;
}

export function findBlock(keyId: string, day: string): Sql {
  return sql`
    select blocked_at is not null as blocked from api_key_days
    where key_id = ${keyId} and day = ${day}::date`;
}
