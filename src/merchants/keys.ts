import type { Service } from '../context.ts';
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
export async function createKey(db: Queries, merchantId: number): Promise<NewKey> {
  const key = { keyId: newKeyId(), secret: newSecret() };
  await db.query(insertKey(key.keyId, merchantId, hashSecret(key.secret)));
  return key;
}

/** Revokes a key, within a second on every process. @returns whether there is such a key */
export async function revokeKey(db: Queries, keyId: string, merchantId: number | null): Promise<boolean> {
  return (await db.query(revokeKeyRow(keyId, merchantId))).length > 0;
}

/** The operator's word: the key's guesses of today no longer count. @returns whether it had guessed today */
export async function pardon(service: Service, keyId: string): Promise<boolean> {
  return (await service.db.query(pardonKey(keyId, dayOf(service.clock())))).length > 0;
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
