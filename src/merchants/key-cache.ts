import type { Merchant, Service } from '../context.ts';
import { gather } from '../db/gather.ts';
import { textArray } from '../db/sql.ts';
import { FIND_KEYS } from './queries.ts';

/**
 * What a process knows of the keys that are calling it. A revoked key, a suspended merchant or a changed permission takes
 * effect within a second: an answer older than that is never used.
 */

export type Key = {
  readonly secretHash: Buffer;
  readonly merchant: Merchant;
  /** It keeps guessing: calls that carry a PIN are refused until the next day. */
  blocked: boolean;
};

type Entry = { key: Key | undefined; askedAtMs: number; pending: Promise<Key | undefined> | undefined };

/** Until this age an entry is used as it is, */
const FRESH_MS = 300;
/** and until this one it is used while a newer one is on its way. Together with a slow look-up that is below a second. */
const USABLE_MS = 800;
/** Far more keys than call one process within a second; beyond it the oldest are forgotten and looked up again. */
const MOST_ENTRIES = 10_000;

const caches = new WeakMap<Service, Map<string, Entry>>();

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
};

const findGathered = gather<Lookup, Key | undefined>({
  keysOf: () => [],
  async run(db, lookups) {
    const day = dayOf(lookups[0]?.service.clock() ?? new Date());
    const rows = await db.hot<Row>(FIND_KEYS, [textArray(lookups.map(({ keyId }) => keyId)), day]);
    const found = new Map(rows.map((row) => [row.ord, toKey(row)]));
    return lookups.map((_, index) => found.get(index + 1));
  },
});

function toKey(row: Row): Key {
  return {
    secretHash: row.secret_hash,
    merchant: {
      id: row.merchant_id,
      name: row.name,
      permissions: new Set(row.permissions),
      opaque: row.opaque,
      suspended: row.suspended,
      defaultProductId: row.default_product_id,
    },
    blocked: row.blocked,
  };
}

/** The day on which guesses are counted: UTC, as `2026-01-31`. */
export function dayOf(now: Date): string {
  return now.toISOString().slice(0, 10);
}

/**
 * The key of an id, at most a second old: at once where it is known well enough, else a promise.
 * @returns undefined for a key that is unknown or revoked
 */
export function findKey(service: Service, keyId: string): Key | undefined | Promise<Key | undefined> {
  const cache = cacheOf(service);
  const nowMs = performance.now();
  const entry = cache.get(keyId);
  const ageMs = entry ? nowMs - entry.askedAtMs : Number.POSITIVE_INFINITY;
  if (entry && ageMs < FRESH_MS) return entry.key;
  const newer = entry?.pending ?? refresh(service, cache, keyId, entry);
  if (entry && ageMs < USABLE_MS) {
    // Who waits for a newer one finds out that it did not come; this one still may be used.
    newer.catch(() => {});
    return entry.key;
  }
  return newer;
}

/** Tells this process at once that a key is blocked; others find out when they look it up again. */
export function markBlocked(service: Service, keyId: string): void {
  const key = cacheOf(service).get(keyId)?.key;
  if (key) key.blocked = true;
}

function cacheOf(service: Service): Map<string, Entry> {
  let cache = caches.get(service);
  if (!cache) {
    cache = new Map();
    caches.set(service, cache);
  }
  return cache;
}

function refresh(service: Service, cache: Map<string, Entry>, keyId: string, old: Entry | undefined): Promise<Key | undefined> {
  const askedAtMs = performance.now();
  const pending = findGathered(service.db, { service, keyId }).then(
    (key) => {
      // A block that this process found out itself while the look-up was under way must not be forgotten.
      if (key && cache.get(keyId)?.key?.blocked && old?.key?.blocked === false) key.blocked = true;
      if (cache.size >= MOST_ENTRIES) cache.delete(cache.keys().next().value as string);
      // An unknown id is looked up each time: whoever invents ids must not push out those that exist.
      if (key) cache.set(keyId, { key, askedAtMs, pending: undefined });
      else cache.delete(keyId);
      return key;
    },
    (error: unknown) => {
      const entry = cache.get(keyId);
      if (entry) entry.pending = undefined;
      throw error;
    },
  );
  if (old) old.pending = pending;
  return pending;
}

