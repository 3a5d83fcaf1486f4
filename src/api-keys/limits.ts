import type { Service } from '../context.ts';

/** How often a key may call: so many calls a second on average, and so many at once. */
export type Limit = { readonly perSecond: number; readonly burst: number };

/** What is left to a key after a call of it. */
export type Allowance = {
  readonly limit: Limit;
  /** Whether this call is within the limit. */
  readonly admitted: boolean;
  /** Calls that it could make at once now. */
  readonly remaining: number;
  /** Until then the whole burst is there again. */
  readonly resetSeconds: number;
  /** Until then one call is. */
  readonly retryAfterSeconds: number;
};

type Bucket = { tokens: number; atMs: number };

const buckets = new WeakMap<Service, Map<string, Bucket>>();

/** Beyond it the key that has not called for the longest is forgotten: its burst is whole again. */
const MOST_BUCKETS = 10_000;

/**
 * Counts a call of a key that has a limit: a bucket of tokens for each key, in the memory of this
 * process. A key that calls too often takes nothing from any other. Calls beyond the limit cost nothing,
 * so a client that keeps on is served at its rate.
 */
export function takeCall(service: Service, keyId: string, limit: Limit, now: Date): Allowance {
  let own = buckets.get(service);
  if (!own) {
    own = new Map();
    buckets.set(service, own);
  }
  const nowMs = now.getTime();
  const bucket = own.get(keyId) ?? { tokens: limit.burst, atMs: nowMs };
  // A clock that is set back gives nothing, and takes nothing away.
  const passedSeconds = Math.max(0, nowMs - bucket.atMs) / 1_000;
  const tokens = Math.min(limit.burst, bucket.tokens + passedSeconds * limit.perSecond);
  const admitted = tokens >= 1;
  const left = admitted ? tokens - 1 : tokens;
  own.delete(keyId);
  if (own.size >= MOST_BUCKETS) own.delete(own.keys().next().value as string);
  own.set(keyId, { tokens: left, atMs: nowMs });
  return {
    limit,
    admitted,
    remaining: Math.floor(left),
    resetSeconds: Math.ceil((limit.burst - left) / limit.perSecond),
    retryAfterSeconds: Math.ceil((1 - left) / limit.perSecond),
  };
}
