import { audit, type Change } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { hashSecret, newKeyId, newSecret } from '../secrets.ts';
import { dayOf } from './key-cache.ts';
import { insertKey, listKeyRows, pardonKey, revokeKeyRow } from './queries.ts';

/** An API key as it is shown once. The secret is stored as a hash only. */
export type NewKey = { readonly keyId: string; readonly secret: string };

export type KeyInfo = {
  readonly keyId: string;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
  /** Of today (UTC). */
  readonly calls: bigint;
  readonly guesses: number;
  readonly blockedAt: Date | null;
};

/** Makes a key for a merchant. Others stay valid: rotation is create, switch over, revoke. */
export async function createKey(operator: Operator, merchantId: number): Promise<NewKey> {
  return operator.service.db.transaction(async (tx) => {
    const { key, change } = await makeKey(tx, merchantId);
    await audit(tx, operator, change);
    return key;
  });
}

/** A new key as a part of a transaction, which tells the audit of the change. */
export async function makeKey(tx: Queries, merchantId: number): Promise<{ key: NewKey; change: Change }> {
  const key = { keyId: newKeyId(), secret: newSecret() };
  await tx.query(insertKey(key.keyId, merchantId, hashSecret(key.secret)));
  return { key, change: { action: 'key.create', subject: `key ${key.keyId}`, after: { merchantId } } };
}

/** Revokes a key, within a second on every process. @returns whether there is such a key */
export async function revokeKey(operator: Operator, keyId: string, merchantId: number | null): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    const [key] = await tx.query<{ revoked_at: Date }>(revokeKeyRow(keyId, merchantId));
    if (!key) return false;
    const after = { revokedAt: key.revoked_at };
    await audit(tx, operator, { action: 'key.revoke', subject: `key ${keyId}`, after });
    return true;
  });
}

/** The operator's word: the key's guesses of today no longer count. @returns whether it had guessed today */
export async function pardon(operator: Operator, keyId: string): Promise<boolean> {
  const { service } = operator;
  return service.db.transaction(async (tx) => {
    const [day] = await tx.query<{ pardoned_guesses: number }>(pardonKey(keyId, dayOf(service.clock())));
    if (!day) return false;
    const after = { pardonedGuesses: day.pardoned_guesses };
    await audit(tx, operator, { action: 'key.pardon', subject: `key ${keyId}`, after });
    return true;
  });
}

/** A merchant's keys, and what each did today. */
export async function listKeys(service: Service, merchantId: number): Promise<KeyInfo[]> {
  type Row = {
    id: string;
    created_at: Date;
    revoked_at: Date | null;
    calls: bigint;
    guesses: number;
    blocked_at: Date | null;
  };
  const rows = await service.db.query<Row>(listKeyRows(merchantId, dayOf(service.clock())));
  return rows.map((row) => ({
    keyId: row.id,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    calls: row.calls,
    guesses: row.guesses,
    blockedAt: row.blocked_at,
  }));
}
