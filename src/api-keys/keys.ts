import { audit, type Change } from '../audit/audit.ts';
import { type Operator, PERMISSIONS, type Permission, type Service } from '../context.ts';
import { hashSecret, newKeyId, newSecret } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { findMerchantRow, pardonKey, touchKey } from '../merchants/queries.ts';
import { dayOf } from './cache.ts';
import type { Limit } from './limits.ts';
import {
  countKeys,
  expireRotated,
  holdKeys,
  insertKey,
  type KeyTerms,
  listKeyRows,
  lockKey,
  revokeKeyRow,
  setLimit,
} from './queries.ts';

/** A new API key. The secret is shown once, and only its hash is stored. */
export type NewKey = { readonly keyId: string; readonly secret: string };

export type KeyInfo = {
  readonly keyId: string;
  readonly merchantId: number;
  /** Whether a user or a token of the merchant made it, and not the operator. */
  readonly isOfMerchant: boolean;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
  readonly expiresAt: Date | null;
  /** The key that replaced it. */
  readonly rotatedTo: string | null;
  /** Limits the key to these permissions of the merchant; null: all of them. */
  readonly scopes: readonly string[] | null;
  /** Limits the key to these networks; null: any network. */
  readonly networks: readonly string[] | null;
  readonly limit: Limit | null;
  readonly lastUsedAt: Date | null;
  /** The calls on the current day (UTC). */
  readonly calls: bigint;
  readonly guesses: number;
  readonly blockedAt: Date | null;
};

/** The restrictions of a key, by default none. */
export type Restrictions = {
  readonly scopes?: readonly Permission[] | undefined;
  /** The networks as returned by `readNetwork`. */
  readonly networks?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
  readonly isOfMerchant?: boolean | undefined;
};

/** The permissions that show codes: with them, a key takes vouchers away. */
const OPENING: readonly Permission[] = ['generate', 'download'];

/** Returns whether a key of these scopes can take vouchers away. Without scopes, it has all permissions. */
export const opensCodes = (scopes: readonly unknown[] | null): boolean =>
  scopes === null || OPENING.some((scope) => scopes.includes(scope));

/** The scopes of a key that shows no codes. */
export const TILL_SCOPES = PERMISSIONS.filter((permission) => !OPENING.includes(permission));

/** The reason why a key cannot be created or changed, in words for the operator. */
export class KeyRefused extends Error {}

/** The most keys of a merchant that work at a time: guesses of PINs are limited for each key. */
const KEYS_MAX = 100;

const ANYTHING: KeyTerms = { scopes: null, networks: null, expiresAt: null, perSecond: null, burst: null };

/**
 * Creates a key for an existing merchant. Other keys stay valid.
 * @throws KeyRefused for scopes that the merchant does not have, or an expiry in the past
 */
export async function createKey(
  operator: Operator,
  merchantId: number,
  { scopes, networks, expiresAt, isOfMerchant }: Restrictions = {},
): Promise<NewKey> {
  const { service } = operator;
  return service.db.transaction(async (tx) => {
    if (expiresAt && expiresAt <= service.clock()) throw new KeyRefused('it would have expired already');
    if (scopes && scopes !== TILL_SCOPES) {
      const [merchant] = await tx.query<{ permissions: string[] }>(findMerchantRow(merchantId));
      const missing = scopes.filter((scope) => !merchant?.permissions.includes(scope));
      if (missing.length > 0)
        throw new KeyRefused(`the merchant has no permission ${missing.join(', ')} itself`);
    }
    const terms = {
      ...ANYTHING,
      scopes: scopes ?? null,
      networks: networks ?? null,
      expiresAt: expiresAt ?? null,
    };
    const { key, change } = await makeKey(tx, merchantId, service.clock(), terms, isOfMerchant);
    await audit(tx, operator, change);
    return key;
  });
}

/** Creates a key within a transaction, with its entry in the audit. @throws KeyRefused */
export async function makeKey(
  tx: Queries,
  merchantId: number,
  now: Date,
  terms: Partial<KeyTerms> = {},
  isOfMerchant = false,
): Promise<{ key: NewKey; change: Change }> {
  const key = { keyId: newKeyId(), secret: newSecret() };
  const all = { ...ANYTHING, ...terms };
  await tx.query(holdKeys(merchantId));
  const [{ count = 0 } = {}] = await tx.query<{ count?: number }>(countKeys(merchantId, now));
  if (count >= KEYS_MAX)
    throw new KeyRefused(`a merchant has at most ${KEYS_MAX} keys that work: revoke one first`);
  await tx.query(insertKey(key.keyId, merchantId, hashSecret(key.secret), all, now, isOfMerchant));
  const after = { merchantId, ...all, madeBy: isOfMerchant ? 'merchant' : 'operator' };
  return { key, change: { action: 'api-key.create', subject: `api-key ${key.keyId}`, after } };
}

type Locked = {
  merchant_id: number;
  scopes: string[] | null;
  networks: string[] | null;
  expires_at: Date | null;
  revoked_at: Date | null;
  rotated_to: string | null;
  calls_per_second: number | null;
  calls_burst: number | null;
};

/**
 * Creates a key with the scopes, networks and limit of another key, which ends after the overlap.
 * @param expiresAt of the new key, which does not inherit the expiry of the old one
 * @returns the new key, and the end of the old one; undefined if there is no such key
 * @throws KeyRefused if the key has ended, or was rotated before
 */
export async function rotateKey(
  operator: Operator,
  keyId: string,
  overlapMs: number,
  expiresAt: Date | null,
  isOfMerchant = false,
): Promise<(NewKey & { readonly until: Date }) | undefined> {
  const now = operator.service.clock();
  return operator.service.db.transaction(async (tx) => {
    const [old] = await tx.query<Locked>(lockKey(keyId));
    if (!old) return undefined;
    if (old.revoked_at || (old.expires_at && old.expires_at <= now))
      throw new KeyRefused('it has ended: create a key');
    if (old.rotated_to) throw new KeyRefused(`it was rotated already: ${old.rotated_to} takes its place`);
    if (expiresAt && expiresAt <= now) throw new KeyRefused('the new key would have expired already');
    const terms = {
      scopes: old.scopes,
      networks: old.networks,
      expiresAt,
      perSecond: old.calls_per_second,
      burst: old.calls_burst,
    };
    const { key, change } = await makeKey(tx, old.merchant_id, now, terms, isOfMerchant);
    const [row] = await tx.query<{ expires_at: Date }>(
      expireRotated(keyId, key.keyId, new Date(now.getTime() + overlapMs)),
    );
    const until = row?.expires_at as Date;
    await audit(tx, operator, change, {
      action: 'api-key.rotate',
      subject: `api-key ${keyId}`,
      before: { expiresAt: old.expires_at },
      after: { expiresAt: until, rotatedTo: key.keyId },
    });
    return { ...key, until };
  });
}

/** Sets the rate limit of a key, or removes it (null). @returns whether the key exists */
export async function limitKey(operator: Operator, keyId: string, limit: Limit | null): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    const [old] = await tx.query<Locked>(lockKey(keyId));
    if (!old) return false;
    await tx.query(setLimit(keyId, limit?.perSecond ?? null, limit?.burst ?? null));
    const before = { perSecond: old.calls_per_second, burst: old.calls_burst };
    const after = { perSecond: limit?.perSecond ?? null, burst: limit?.burst ?? null };
    await audit(tx, operator, { action: 'api-key.limit', subject: `api-key ${keyId}`, before, after });
    return true;
  });
}

/** Revokes a key. It takes effect within a second on every process. @returns whether the key exists */
export async function revokeKey(
  operator: Operator,
  keyId: string,
  merchantId: number | null,
): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    const [old] = await tx.query<Locked>(lockKey(keyId));
    const [key] = await tx.query<{ revoked_at: Date }>(
      revokeKeyRow(keyId, merchantId, operator.service.clock()),
    );
    if (!old || !key) return false;
    const before = { revokedAt: old.revoked_at };
    const after = { revokedAt: key.revoked_at };
    await audit(tx, operator, { action: 'api-key.revoke', subject: `api-key ${keyId}`, before, after });
    return true;
  });
}

type Pardoned = { pardoned_guesses: number; before_guesses: number; before_blocked_at: Date | null };

/** Stops counting the key's guesses of today. @returns whether it had guessed today */
export async function pardon(operator: Operator, keyId: string): Promise<boolean> {
  const { service } = operator;
  return service.db.transaction(async (tx) => {
    const [day] = await tx.query<Pardoned>(pardonKey(keyId, dayOf(service.clock())));
    if (!day) return false;
    await tx.query(touchKey(keyId));
    const before = { pardonedGuesses: day.before_guesses, blockedAt: day.before_blocked_at };
    const after = { pardonedGuesses: day.pardoned_guesses, blockedAt: null };
    await audit(tx, operator, { action: 'api-key.pardon', subject: `api-key ${keyId}`, before, after });
    return true;
  });
}

type Row = Locked & {
  is_of_merchant: boolean;
  id: string;
  created_at: Date;
  calls: bigint;
  guesses: number;
  blocked_at: Date | null;
  last_call_at: Date | null;
};

/** Lists a merchant's keys, with their counts of today. */
export async function listKeys(service: Service, merchantId: number): Promise<KeyInfo[]> {
  const rows = await service.db.query<Row>(listKeyRows(merchantId, null, dayOf(service.clock())));
  return rows.map(toInfo);
}

export async function findKeyInfo(service: Service, keyId: string): Promise<KeyInfo | undefined> {
  const [row] = await service.db.query<Row>(listKeyRows(null, keyId, dayOf(service.clock())));
  return row && toInfo(row);
}

function toInfo(row: Row): KeyInfo {
  const { calls_per_second: perSecond, calls_burst: burst } = row;
  return {
    keyId: row.id,
    merchantId: row.merchant_id,
    isOfMerchant: row.is_of_merchant,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    expiresAt: row.expires_at,
    rotatedTo: row.rotated_to,
    scopes: row.scopes,
    networks: row.networks,
    limit: perSecond === null || burst === null ? null : { perSecond, burst },
    lastUsedAt: row.last_call_at,
    calls: row.calls,
    guesses: row.guesses,
    blockedAt: row.blocked_at,
  };
}
