import type { Context, Service } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { hashSecret, sameHash } from '../secrets.ts';
import { countCall } from './guessing.ts';
import { dayOf, findKey, type Key, waitLikeUnknown } from './key-cache.ts';

/** Who calls, and whether its key has been guessing too much today. */
export type Caller = { readonly context: Context; readonly guessing: boolean };

/** Compared with where there is no key, so that the time tells nothing of which keys exist. */
const NO_HASH = Buffer.alloc(32);
/** Longer than any credentials of ours: what is longer is not worth decoding. */
const LONGEST_HEADER = 512;
const DAY_MS = 86_400_000;

/**
 * Finds out who calls by HTTP Basic, `keyId:secret` (docs/reference/interface.md, "Authentication").
 * @param header the Authorization header as it came
 * @returns at once for a key that is in use, so that a call under load waits for nothing
 * @throws Refusal `01`, the same for no credentials, an unknown key, a wrong secret and a revoked key; errors of the
 *   database as they are
 */
export function identify(service: Service, header: string | undefined): Caller | Promise<Caller> {
  const credentials = readBasic(header);
  if (!credentials) throw new Refusal('01');
  const key = findKey(service, credentials.keyId);
  if (key instanceof Promise) {
    return key.then((found) => judge(service, credentials, found) ?? Promise.reject(new Refusal('01')));
  }
  const caller = judge(service, credentials, key);
  return caller ?? waitLikeUnknown(service, credentials.keyId).then(() => Promise.reject(new Refusal('01')));
}

/** Like `identify`, by a promise in any case. */
export async function authenticate(service: Service, header: string | undefined): Promise<Caller> {
  return identify(service, header);
}

type Credentials = { readonly keyId: string; readonly secret: string };

/** The caller that a key and a secret make, or undefined where they do not fit. */
function judge(service: Service, { keyId, secret }: Credentials, key: Key | undefined): Caller | undefined {
  const same = sameHash(hashSecret(secret), key?.secretHash ?? NO_HASH);
  if (!key || !same) return undefined;
  const now = service.clock();
  countCall(service, keyId, now);
  const guessing = key.blockedDay !== undefined && key.blockedDay === dayOf(now);
  return { context: { service, merchant: key.merchant, keyId, now }, guessing };
}

/**
 * Refuses a caller that may not call now: `97` where its key keeps guessing and the call carries a PIN, then `04`.
 * @param carriesPin whether the endpoint takes a PIN
 */
export function admit({ context, guessing }: Caller, carriesPin: boolean): void {
  if (guessing && carriesPin) {
    const leftMs = DAY_MS - (context.now.getTime() % DAY_MS);
    throw new Refusal('97', { retryAfterSeconds: Math.ceil(leftMs / 1000) });
  }
  if (context.merchant.suspended) throw new Refusal('04');
}

function readBasic(header: string | undefined): Credentials | undefined {
  if (!header || header.length > LONGEST_HEADER) return undefined;
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header)?.[1];
  if (!encoded) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  // Only what could be a key id is asked of the database.
  if (colon < 1 || !/^[A-Za-z0-9_-]+$/.test(text.slice(0, colon))) return undefined;
  return { keyId: text.slice(0, colon), secret: text.slice(colon + 1) };
}
