import type { Merchant, Service } from '../context.ts';
import { gather } from '../db/gather.ts';
import { textArray } from '../db/sql.ts';
import { containing } from '../network.ts';
import { isoDay } from '../time.ts';
import type { Limit } from './limits.ts';
import { FIND_KEYS } from './queries.ts';

/**
 * What a process knows of the keys that are calling it. A revoked key, a suspended merchant or a changed permission takes
 * effect within a second on every process: knowledge older than that is never used.
 */

export type Key = {
  readonly secretHash: Buffer;
  /** Its permissions are those of the key: of the merchant's, what is in the key's scopes. */
  readonly merchant: Merchant;
  readonly expiresAt: Date | null;
  /** Whether it may be called with from an address; undefined: from anywhere. */
  readonly allows: ((address: string | undefined) => boolean) | undefined;
  readonly limit: Limit | undefined;
  /** The day (`dayOf`) for which it is blocked because it keeps guessing: it may send no PIN on it. */
  readonly blockedDay: string | undefined;
};

/** A point of both clocks: the one that only runs, and the one that people (and tests) can set forward. */
type Instant = { readonly runMs: number; readonly clockMs: number };

type Entry = { readonly key: Key; readonly askedAt: Instant };

type Cache = {
  readonly entries: Map<string, Entry>;
  /** Look-ups under way: a key never has two. */
  readonly pending: Map<string, { readonly askedAt: Instant; readonly key: Promise<Key | undefined> }>;
  /** Blocks that this process decided itself: look-ups that were sent before must not undo them. */
  readonly blocks: Map<string, { readonly day: string; readonly at: Instant }>;
};

/** Until this age an entry is used as it is, */
const FRESH_MS = 300;
/** and until this one it is used while a newer one is on its way: that leaves a fifth of the second to spare. */
const USABLE_MS = 800;
/** Far more keys than call one process within a second; beyond it the oldest is forgotten and looked up again. */
const MOST_ENTRIES = 10_000;

const caches = new WeakMap<Service, Cache>();

type Lookup = { readonly service: Service; readonly keyId: string };

type Row = {
  ord: number;
  secret_hash: Buffer;
  merchant_id: number;
  name: string;
  permissions: string[];
  opaque: boolean;
  suspended: boolean;
  default_product_id: number;
  blocked: boolean;
  scopes: string[] | null;
  networks: string[] | null;
  expires_at: Date | null;
  calls_per_second: number | null;
  calls_burst: number | null;
};

const operation = {
  keysOf: () => [],
  async run(db: Service['db'], lookups: readonly Lookup[]) {
    const day = dayOf((lookups[0] as Lookup).service.clock());
    const rows = await db.hot<Row>(FIND_KEYS, [textArray(lookups.map(({ keyId }) => keyId)), day]);
    const found = new Map(rows.map((row) => [row.ord, toKey(row, day)]));
    return lookups.map((_, index) => found.get(index + 1));
  },
};

/** Two queues: whoever floods the one with ids that do not exist keeps nobody waiting whose key is known. */
const refreshKnown = gather<Lookup, Key | undefined>(operation);
const findUnknown = gather<Lookup, Key | undefined>(operation);

function toKey(row: Row, day: string): Key {
  const { scopes, calls_per_second: perSecond, calls_burst: burst } = row;
  return {
    secretHash: row.secret_hash,
    merchant: {
      id: row.merchant_id,
      name: row.name,
      permissions: new Set(row.permissions.filter((permission) => scopes?.includes(permission) ?? true)),
      opaque: row.opaque,
      suspended: row.suspended,
      defaultProductId: row.default_product_id,
    },
    expiresAt: row.expires_at,
    allows: row.networks ? containing(row.networks) : undefined,
    limit: perSecond === null || burst === null ? undefined : { perSecond, burst },
    blockedDay: row.blocked ? day : undefined,
  };
}

/** The day on which guesses are counted: UTC, as `2026-01-31`. */
export function dayOf(now: Date): string {
  return isoDay(now.getTime());
}

/**
 * The key of an id, less than a second old: at once where it is known well enough, else a promise.
 * @returns undefined for a key that is unknown or revoked
 */
export function findKey(service: Service, keyId: string): Key | Promise<Key | undefined> {
  const cache = cacheOf(service);
  const now = instant(service);
  const entry = cache.entries.get(keyId);
  if (!entry) return lookUp(service, cache, keyId, now);
  const ageMs = ageOf(entry.askedAt, now);
  if (ageMs < FRESH_MS) return entry.key;
  if (ageMs >= USABLE_MS) return lookUp(service, cache, keyId, now);
  // Whoever has to wait for the newer one will be told that it did not come; this one still may be used.
  lookUp(service, cache, keyId, now).catch(() => {});
  return entry.key;
}

/** How the secret of a key is stored, where that is known. It is the same for ever: a new secret comes with a new id. */
export function knownHash(service: Service, keyId: string): Buffer | undefined {
  return cacheOf(service).entries.get(keyId)?.key.secretHash;
}

/** No key has it: ids of keys are longer. */
const NOBODY = 'key_nobody';

/**
 * Does the work of looking up a key that does not exist. Who sent a wrong secret for a key that is in use waits as long as who
 * invented the key, so that the time does not tell the two apart; and a key that is there takes longer to look up.
 */
export async function lookUpNobody(service: Service): Promise<void> {
  await findUnknown(service.db, { service, keyId: NOBODY });
}

/** Tells this process at once that a key is blocked for a day; others find out when they look it up again. */
export function markBlocked(service: Service, keyId: string, day: string): void {
  const { entries, blocks } = cacheOf(service);
  const entry = entries.get(keyId);
  if (entry) entries.set(keyId, { ...entry, key: { ...entry.key, blockedDay: day } });
  blocks.set(keyId, { day, at: instant(service) });
  if (blocks.size > MOST_ENTRIES) forgetOldest(blocks);
}

/** Whether this process knows that a key is blocked for a day. */
export function isBlocked(service: Service, keyId: string, day: string): boolean {
  return cacheOf(service).entries.get(keyId)?.key.blockedDay === day;
}

function cacheOf(service: Service): Cache {
  let cache = caches.get(service);
  if (!cache) {
    cache = { entries: new Map(), pending: new Map(), blocks: new Map() };
    caches.set(service, cache);
  }
  return cache;
}

function instant(service: Service): Instant {
  return { runMs: performance.now(), clockMs: service.clock().getTime() };
}

/** By whichever clock it is older. One that is set back cannot make it younger: the other one only runs. */
function ageOf(since: Instant, now: Instant): number {
  return Math.max(now.runMs - since.runMs, now.clockMs - since.clockMs);
}

/** Joins the look-up under way, or sends one where there is none that is young enough for a call that came at `arrival`. */
async function lookUp(service: Service, cache: Cache, keyId: string, arrival: Instant): Promise<Key | undefined> {
  const pending = cache.pending.get(keyId);
  if (!pending) return send(service, cache, keyId);
  const key = await pending.key;
  return ageOf(pending.askedAt, arrival) < USABLE_MS ? key : lookUp(service, cache, keyId, arrival);
}

async function send(service: Service, cache: Cache, keyId: string): Promise<Key | undefined> {
  const askedAt = instant(service);
  const find = cache.entries.has(keyId) ? refreshKnown : findUnknown;
  const key = find(service.db, { service, keyId })
    .then((found) => remember(cache, keyId, found, askedAt))
    .finally(() => cache.pending.delete(keyId));
  cache.pending.set(keyId, { askedAt, key });
  return key;
}

function remember(cache: Cache, keyId: string, found: Key | undefined, askedAt: Instant): Key | undefined {
  // An unknown id is looked up each time: whoever invents ids must not push out those that exist.
  if (!found) {
    cache.entries.delete(keyId);
    return undefined;
  }
  const block = cache.blocks.get(keyId);
  if (block && block.at.runMs < askedAt.runMs) cache.blocks.delete(keyId);
  const key = block && block.at.runMs >= askedAt.runMs ? { ...found, blockedDay: block.day } : found;
  if (!cache.entries.has(keyId) && cache.entries.size >= MOST_ENTRIES) forgetOldest(cache.entries);
  cache.entries.set(keyId, { key, askedAt });
  return key;
}

function forgetOldest(map: Map<string, unknown>): void {
  map.delete(map.keys().next().value as string);
}
