import { kept, type Service } from '../context.ts';

/** A rate limit: the average calls per second, and the calls that are possible at once. */
export type Limit = { readonly perSecond: number; readonly burst: number };

/** The remaining allowance after a call. */
export type Allowance = {
  readonly limit: Limit;
  /** Whether this call is within the limit. */
  readonly admitted: boolean;
  /** The number of calls that are possible at once now. */
  readonly remaining: number;
  /** The seconds until the whole burst is available again. */
  readonly resetSeconds: number;
  /** The seconds until a call is possible. */
  readonly retryAfterSeconds: number;
};

type Bucket = { tokens: number; atMs: number };

const bucketsOf = kept(() => new Map<string, Bucket>());

/**
 * The number of remembered keys. Above it, the key with the oldest call is removed: its burst is full again.
 */
const BUCKETS_MAX = 10_000;

/**
 * Counts a call of a key with a limit. Each key has a token bucket in the memory of this process. Calls over
 * the limit take no tokens, so a client that does not stop is served at its rate.
 */
export function takeCall(service: Service, keyId: string, limit: Limit, now: Date): Allowance {
  const own = bucketsOf(service);
  const nowMs = now.getTime();
  const bucket = own.get(keyId) ?? { tokens: limit.burst, atMs: nowMs };
  // A clock that was set back neither adds nor removes tokens.
  const passedSeconds = Math.max(0, nowMs - bucket.atMs) / 1_000;
  const tokens = Math.min(limit.burst, bucket.tokens + passedSeconds * limit.perSecond);
  const admitted = tokens >= 1;
  const left = admitted ? tokens - 1 : tokens;
  own.delete(keyId);
  if (own.size >= BUCKETS_MAX) own.delete(own.keys().next().value as string);
  own.set(keyId, { tokens: left, atMs: nowMs });
  return {
    limit,
    admitted,
    remaining: Math.floor(left),
    resetSeconds: Math.ceil((limit.burst - left) / limit.perSecond),
    retryAfterSeconds: Math.ceil((1 - left) / limit.perSecond),
  };
}
