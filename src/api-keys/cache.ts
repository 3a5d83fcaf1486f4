import { kept, type Merchant, type Service } from '../context.ts';
import type { Operation } from '../db/operation.ts';
import { type HotStatement, textArray } from '../db/sql.ts';
import { containing } from '../network.ts';
import { isoDay } from '../time.ts';

/**
 * The API keys that call this process. A revoked key, a suspended merchant or a changed permission takes
 * effect within a second on every process: an entry is used only if the process asked for changes less than a
 * second ago.
 *
 * A key is looked up once. After that, one statement for the whole process reads all changes since the last
 * one. Its cost depends neither on the number of keys nor on the number of calls.
 */

/** A rate limit: the average calls per second, and the calls that are possible at once. */
export type Limit = { readonly perSecond: number; readonly burst: number };

export type Key = {
  readonly secretHash: Buffer;
  /** The merchant with the permissions of the key: those of the merchant that are also scopes of the key. */
  readonly merchant: Merchant;
  readonly expiresAt: Date | null;
  /** Whether the key may be used from an address; undefined: from any address. */
  readonly allows: ((address: string | undefined) => boolean) | undefined;
  readonly limit: Limit | null;
  /** The day (`dayOf`) on which the key is blocked for guessing. It may not send PINs on that day. */
  readonly blockedDay: string | undefined;
};

/** A point in time on two clocks: the monotonic one, and the one that people (and tests) can set. */
type Instant = { readonly runMs: number; readonly clockMs: number };

type Cache = {
  readonly entries: Map<string, Key>;
  /** Look-ups in flight, at most one for each key. */
  readonly pending: Map<string, Promise<Key | undefined>>;
  /** Blocks that this process decided. Answers to earlier statements must not undo them. */
  readonly blocks: Map<string, { readonly day: string; readonly at: Instant }>;
  /**
   * The time of the last read of changes, and the oldest transaction that was running then; undefined at
   * first.
   */
  checked: { readonly at: Instant; readonly horizon: string } | undefined;
  checking: Promise<void> | undefined;
};

/** Up to this age, an entry is used without a check. */
const FRESH_MS = 300;
/**
 * Up to this age, an entry is used while newer changes are being read, which leaves a fifth of the second for
 * the read.
 */
const USABLE_MS = 800;
/** Far more keys than call one process. Above this number, the oldest is removed and looked up again. */
const ENTRIES_MAX = 10_000;

const cacheOf = kept(
  (): Cache => ({
    entries: new Map(),
    pending: new Map(),
    blocks: new Map(),
    checked: undefined,
    checking: undefined,
  }),
);

type Lookup = { readonly service: Service; readonly keyId: string };

type Row = Pick<Key, 'secretHash' | 'expiresAt' | 'limit'> & {
  readonly keyId: string;
  readonly revoked: boolean;
  readonly merchant: Omit<Merchant, 'permissions'> & { readonly permissions: readonly string[] };
  readonly blocked: boolean;
  readonly scopes: readonly string[] | null;
  readonly networks: readonly string[] | null;
};

const KEY = `
  k.id as "keyId", k.revoked_at is not null as revoked, k.secret_hash as "secretHash",
  k.expires_at as "expiresAt", d.blocked_at is not null as blocked, k.scopes, k.networks,
  json_build_object('id', m.id, 'name', m.name, 'permissions', m.permissions, 'opaque', m.opaque,
    'suspended', m.suspended_at is not null, 'defaultProductId', m.default_product_id,
    'isLimited', m.is_limited) as merchant,
  case when k.calls_per_second is not null
    then json_build_object('perSecond', k.calls_per_second, 'burst', k.calls_burst) end as "limit"`;

/**
 * Looks up keys. In: $1 a column of key ids; $2 the day. Out: a row for each key that exists and is not
 * revoked.
 */
const FIND_KEYS: HotStatement = {
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

const findUnknown: Operation<Lookup, Row | undefined, Key | undefined> = {
  keysOf: () => [],
  async run(db, lookups) {
    const day = dayOf((lookups[0] as Lookup).service.clock());
    const rows = await db.hot<Row>(FIND_KEYS, [textArray(lookups.map(({ keyId }) => keyId)), day]);
    const found = new Map(rows.map((row) => [row.keyId, row]));
    return lookups.map(({ keyId }) => found.get(keyId));
  },
  answer: ({ service }, row) => row && toKey(row, dayOf(service.clock())),
};

function toKey({ secretHash, expiresAt, limit, merchant, scopes, networks, blocked }: Row, day: string): Key {
  const permissions = merchant.permissions.filter((permission) => scopes?.includes(permission) ?? true);
  return {
    secretHash,
    expiresAt,
    limit,
    merchant: { ...merchant, permissions: new Set(permissions) },
    allows: networks ? containing(networks) : undefined,
    blockedDay: blocked ? day : undefined,
  };
}

/** Returns the day on which guesses are counted: UTC, as `2026-01-31`. */
export function dayOf(now: Date): string {
  return isoDay(now.getTime());
}

/**
 * Returns the key with an id, as of less than a second ago: without a promise if the entry is recent enough.
 * @returns undefined for a key that is unknown or revoked
 */
export function findKey(service: Service, keyId: string): Key | Promise<Key | undefined> {
  const cache = cacheOf(service);
  const entry = cache.entries.get(keyId);
  if (!entry) return lookUp(service, cache, keyId);
  const ageMs = cache.checked ? ageOf(cache.checked.at, instant(service)) : Number.POSITIVE_INFINITY;
  if (ageMs < FRESH_MS) return entry;
  const checking = check(service, cache);
  // A call that has to wait for the changes reports their failure. Until then the entry may be used.
  if (ageMs < USABLE_MS) {
    checking.catch(() => {});
    return entry;
  }
  return checking.then(() => cache.entries.get(keyId) ?? lookUp(service, cache, keyId));
}

/** Returns the hash of a key's secret, if it is cached. It never changes: a new secret has a new key id. */
export function knownHash(service: Service, keyId: string): Buffer | undefined {
  return cacheOf(service).entries.get(keyId)?.secretHash;
}

/** No key has this id: key ids are longer. */
const NOBODY = 'key_nobody';

/** Does the work of looking up an unknown key, so that a wrong secret takes as long as an invented key. */
export async function lookUpNobody(service: Service): Promise<void> {
  await service.batcher.add(findUnknown, 0, { service, keyId: NOBODY });
}

/** Blocks a key for a day in this process at once; other processes see it with the next changes. */
export function markBlocked(service: Service, keyId: string, day: string): void {
  const { entries, blocks } = cacheOf(service);
  const entry = entries.get(keyId);
  if (entry) entries.set(keyId, { ...entry, blockedDay: day });
  blocks.set(keyId, { day, at: instant(service) });
  if (blocks.size > ENTRIES_MAX) forgetOldest(blocks);
}

/** Whether this process has recorded a block of a key for a day. */
export function isBlocked(service: Service, keyId: string, day: string): boolean {
  return cacheOf(service).entries.get(keyId)?.blockedDay === day;
}

function instant(service: Service): Instant {
  return { runMs: performance.now(), clockMs: service.clock().getTime() };
}

/**
 * Returns the age by the clock that shows the greater one: a clock that is set back cannot make an entry
 * younger.
 */
function ageOf(since: Instant, now: Instant): number {
  return Math.max(now.runMs - since.runMs, now.clockMs - since.clockMs);
}

type Change = { readonly horizon: string } & (Row | { readonly keyId: null });

/** Reads the changes since the last read. Calls that ask at the same moment share one statement. */
function check(service: Service, cache: Cache): Promise<void> {
  cache.checking ??= ask(service, cache).finally(() => {
    cache.checking = undefined;
  });
  return cache.checking;
}

async function ask(service: Service, cache: Cache): Promise<void> {
  const { db, clock } = service;
  const at = instant(service);
  const day = dayOf(clock());
  // Transactions that were running at the last read may have committed since. Their changes count as new.
  const before = cache.checked?.horizon;
  const changes = await db.hot<Change>(CHANGED_KEYS, [before ?? null, day, ENTRIES_MAX]);
  const horizon = changes[0]?.horizon as string;
  // A horizon that goes back is that of another server, which numbers its transactions from the beginning.
  const isOtherServer = before !== undefined && BigInt(horizon) < BigInt(before);
  if (changes.length >= ENTRIES_MAX || before === undefined || isOtherServer) cache.entries.clear();
  else for (const change of changes) if (change.keyId !== null) update(cache, change, day, at);
  cache.checked = { at, horizon };
}

function update(cache: Cache, row: Row, day: string, askedAt: Instant): void {
  if (!cache.entries.has(row.keyId)) return;
  if (row.revoked) cache.entries.delete(row.keyId);
  else cache.entries.set(row.keyId, withBlock(cache, row.keyId, toKey(row, day), askedAt));
}

/** Looks up a key. It reads the changes first, since an entry is only usable with them. */
async function lookUp(service: Service, cache: Cache, keyId: string): Promise<Key | undefined> {
  const pending = cache.pending.get(keyId);
  if (pending) return pending;
  const looking = (async () => {
    if (!cache.checked) await check(service, cache);
    const askedAt = instant(service);
    const found = await service.batcher.add(findUnknown, 0, { service, keyId });
    // Unknown ids are not cached: invented ids must not displace real ones.
    if (!found) return undefined;
    const key = withBlock(cache, keyId, found, askedAt);
    if (cache.entries.size >= ENTRIES_MAX) forgetOldest(cache.entries);
    cache.entries.set(keyId, key);
    return key;
  })().finally(() => cache.pending.delete(keyId));
  cache.pending.set(keyId, looking);
  return looking;
}

function withBlock(cache: Cache, keyId: string, key: Key, askedAt: Instant): Key {
  const block = cache.blocks.get(keyId);
  if (!block) return key;
  if (block.at.runMs >= askedAt.runMs) return { ...key, blockedDay: block.day };
  cache.blocks.delete(keyId);
  return key;
}

function forgetOldest(map: Map<string, unknown>): void {
  map.delete(map.keys().next().value as string);
}
