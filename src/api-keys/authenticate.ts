import { type Context, kept, type Service } from '../context.ts';
import { hashSecret, isKeyId, sameHash } from '../credentials.ts';
import { Refusal } from '../refusal.ts';
import { dayOf, findKey, type Key, knownHash, type Limit, lookUpNobody } from './cache.ts';
import { countCall, refuseGuesser } from './guesses.ts';

/** The request of a call. */
type From = { readonly ip?: string; readonly id?: string };

export type Caller = {
  readonly context: Context;
  /** Whether the key is blocked today because of too many guesses. */
  readonly guessing: boolean;
  /** The remaining allowance of its rate limit, if it has one. */
  readonly allowance: Allowance | undefined;
};

/** Replaces the hash of an unknown key, so that the response time does not reveal which keys exist. */
const NO_HASH = Buffer.alloc(32);
/** The maximum length of a header, above that of any valid credentials. A longer one is not decoded. */
const LONGEST_HEADER = 512;

/**
 * Authenticates a caller by HTTP Basic, `keyId:secret` (docs/reference/interface.md, "Authentication").
 * @param header the Authorization header
 * @param from the id of the request, and the caller's address, for a key that is limited to networks
 * @returns without a promise for a known key, so that a call under load does not wait
 * @throws Refusal `01`, the same for missing credentials, an unknown key, a wrong secret, a revoked or
 *   expired key, and a call from another network; errors of the database
 */
export function identify(service: Service, header: string | undefined, from: From): Caller | Promise<Caller> {
  const credentials = readBasic(header);
  if (!credentials) throw new Refusal('01');
  const given = hashSecret(credentials.secret);
  const { keyId } = credentials;
  const known = knownHash(service, keyId);
  // Whatever the age of the entry: reading it again would take longer than the answer for an unknown key.
  if (known && !sameHash(given, known)) return refuseLikeUnknown(service);
  const key = findKey(service, keyId);
  if (key instanceof Promise) {
    return key.then(
      (found) => judge(service, keyId, given, found, from) ?? Promise.reject(new Refusal('01')),
    );
  }
  return judge(service, keyId, given, key, from) ?? refuseLikeUnknown(service);
}

async function refuseLikeUnknown(service: Service): Promise<never> {
  await lookUpNobody(service);
  throw new Refusal('01');
}

/**
 * Like `identify`, but it always returns a promise, and has no address: a key that is limited to networks is
 * refused.
 */
export async function authenticate(service: Service, header: string | undefined): Promise<Caller> {
  return identify(service, header, {});
}

type Credentials = { readonly keyId: string; readonly secret: string };

/** Returns the caller, or undefined if key and secret do not match, or may not be used now or from there. */
function judge(
  service: Service,
  keyId: string,
  given: Buffer,
  key: Key | undefined,
  from: From,
): Caller | undefined {
  const same = sameHash(given, key?.secretHash ?? NO_HASH);
  const now = service.clock();
  if (!key || !same || !isUsable(key, now, from)) return undefined;
  const guessing = key.blockedDay !== undefined && key.blockedDay === dayOf(now);
  const allowance = key.limit ? takeCall(service, keyId, key.limit, now) : undefined;
  const context = { service, merchant: key.merchant, keyId, now, requestId: from.id };
  return { context, guessing, allowance };
}

function isUsable(key: Key, now: Date, from: From): boolean {
  if (key.expiresAt && key.expiresAt <= now) return false;
  return key.allows?.(from.ip) ?? true;
}

/**
 * Refuses a caller that may not call now: `97` if its key is over its limit, or if it is blocked for guessing
 * and the call has a PIN; then `04`. Counts the call.
 * @param carriesPin whether the endpoint takes a PIN
 */
export function admit({ context, guessing, allowance }: Caller, carriesPin: boolean): void {
  const { service, merchant, keyId, now } = context;
  const isLimited = allowance?.admitted === false;
  const isStopped = guessing && carriesPin;
  // A refused call counts as a use of the key, but not in its favor. Otherwise refused calls would permit
  // more guesses.
  countCall(service, keyId, now, !(isLimited || isStopped || merchant.suspended));
  if (isLimited) throw new Refusal('97', { retryAfterSeconds: allowance.retryAfterSeconds });
  if (isStopped) refuseGuesser(now);
  if (merchant.suspended) throw new Refusal('04');
}

function readBasic(header: string | undefined): Credentials | undefined {
  if (!header || header.length > LONGEST_HEADER) return undefined;
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header)?.[1];
  if (!encoded) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  const keyId = text.slice(0, Math.max(colon, 0));
  // Only text in the form of a key id reaches a statement: a secret or a code in its place must not.
  return isKeyId(keyId) ? { keyId, secret: text.slice(colon + 1) } : undefined;
}

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
function takeCall(service: Service, keyId: string, limit: Limit, now: Date): Allowance {
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
