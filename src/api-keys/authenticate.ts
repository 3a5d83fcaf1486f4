import type { Context, Service } from '../context.ts';
import { hashSecret, isKeyId, sameHash } from '../credentials.ts';
import { Refusal } from '../refusal.ts';
import { dayOf, findKey, type Key, knownHash, lookUpNobody } from './cache.ts';
import { refuseGuesser } from './guess-rate.ts';
import { countCall } from './guesses.ts';
import { type Allowance, takeCall } from './limits.ts';

/** Where a call comes from. */
type From = { readonly ip?: string };

export type Caller = {
  readonly context: Context;
  /** Whether its key has been guessing too much today. */
  readonly guessing: boolean;
  /** What its limit leaves it, where it has one. */
  readonly allowance: Allowance | undefined;
};

/** Compared with where there is no key, so that the time tells nothing of which keys exist. */
const NO_HASH = Buffer.alloc(32);
/** Longer than any credentials of ours: what is longer is not worth decoding. */
const LONGEST_HEADER = 512;

/**
 * Finds out who calls by HTTP Basic, `keyId:secret` (docs/reference/interface.md, "Authentication").
 * @param header the Authorization header as it came
 * @param from the caller's address; asked only of a key that is bound to networks
 * @returns at once for a key that is in use, so that a call under load waits for nothing
 * @throws Refusal `01`, the same for no credentials, an unknown key, a wrong secret, a key that was
 *   revoked or has expired, and
 *   a call from where the key may not be used; errors of the database as they are
 */
export function identify(service: Service, header: string | undefined, from: From): Caller | Promise<Caller> {
  const credentials = readBasic(header);
  if (!credentials) throw new Refusal('01');
  const given = hashSecret(credentials.secret);
  const { keyId } = credentials;
  const known = knownHash(service, keyId);
  // However old what is known of the key: another look at it would take longer than at one that does not
  // exist.
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
 * Like `identify`, by a promise in any case, and from nowhere: a key that is bound to networks is refused.
 */
export async function authenticate(service: Service, header: string | undefined): Promise<Caller> {
  return identify(service, header, {});
}

type Credentials = { readonly keyId: string; readonly secret: string };

/**
 * The caller that a key and a secret make, or undefined where they do not fit, or may not be used now or
 * from there.
 */
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
  const allowance = key.limit && takeCall(service, keyId, key.limit, now);
  return { context: { service, merchant: key.merchant, keyId, now }, guessing, allowance };
}

function isUsable(key: Key, now: Date, from: From): boolean {
  if (key.expiresAt && key.expiresAt <= now) return false;
  return key.allows?.(from.ip) ?? true;
}

/**
 * Refuses a caller that may not call now: `97` where its key calls too often, or keeps guessing and the
 * call carries a PIN; then `04`. Counts the call.
 * @param carriesPin whether the endpoint takes a PIN
 */
export function admit({ context, guessing, allowance }: Caller, carriesPin: boolean): void {
  const { service, merchant, keyId, now } = context;
  const isLimited = allowance?.admitted === false;
  const isStopped = guessing && carriesPin;
  // A call that is refused is a use of the key, but does not speak for it: whoever may not call could
  // else earn guesses by calling.
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
  // Only what could be a key id is asked of the database: a secret or a code that came in its place must
  // not stand in a statement.
  return isKeyId(keyId) ? { keyId, secret: text.slice(colon + 1) } : undefined;
}
