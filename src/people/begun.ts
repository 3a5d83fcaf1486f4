import { randomBytes } from 'node:crypto';
import type { Service } from '../context.ts';
import { hashSecret } from '../credentials.ts';
import { type Sql, sql } from '../db/sql.ts';
import { MINUTE_MS } from '../time.ts';

/**
 * Sign-ins in progress that keep no row. Anybody can begin one, so a row for each would let a stranger fill
 * the database. The browser has a random token in a cookie, and everything else that the service has to
 * remember, such as the challenge of a passkey, is a keyed hash of that token and its purpose.
 */

/** The time that a person has for the next step of a sign-in. */
export const SIGN_IN_MS = 10 * MINUTE_MS;
export const SIGN_IN_EXPIRED = 'the sign-in has expired: begin again';

/** The clocks of two processes, or of this service and an identity provider, differ by less. */
export const CLOCKS_DIFFER_MS = MINUTE_MS;
const TOKEN_BYTES = 32;
/**
 * The token begins with the time at which it expires, in milliseconds, and an id of 64 bits. The other 144
 * bits are random.
 */
const TIME_BYTES = 6;

/**
 * Begins a sign-in.
 * @param of the id of what the sign-in is about, such as a session; 0 for a new sign-in
 * @returns the token for the browser's cookie
 */
export function begin(now: Date, of = 0n): string {
  const token = randomBytes(TOKEN_BYTES);
  token.writeUIntBE(now.getTime() + SIGN_IN_MS, 0, TIME_BYTES);
  token.writeBigUInt64BE(of, TIME_BYTES);
  return token.toString('base64url');
}

/** What a token says. It is proven once the answer matches what was derived from the token. */
export type Begun = { readonly beganAt: Date; readonly of: bigint };

/** Returns what a token says; undefined if it has expired. */
export function readBegun(token: string, now: Date): Begun | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const expiresAt = bytes.readUIntBE(0, TIME_BYTES);
  const leftMs = expiresAt - now.getTime();
  if (leftMs <= 0 || leftMs > SIGN_IN_MS + CLOCKS_DIFFER_MS) return undefined;
  return { beganAt: new Date(expiresAt - SIGN_IN_MS), of: bytes.readBigUInt64BE(TIME_BYTES) };
}

/** Returns 256 bits that nobody can predict without the key ring, the same each time. */
export function derived({ keys }: Service, token: string, purpose: string): Buffer {
  return keys.fingerprintOf(`begun ${purpose} ${token}`);
}

/**
 * Records that a sign-in has succeeded, so that its answer is not accepted again.
 * @returns false if it has been recorded before
 */
export async function useOnce({ db, clock }: Service, token: string): Promise<boolean> {
  const expiresAt = new Date(clock().getTime() + SIGN_IN_MS + CLOCKS_DIFFER_MS);
  const used = insertSignIn({ tokenHash: hashSecret(token), userId: null, stage: 'used', expiresAt });
  return (await db.query(used)).length > 0;
}

/** An account at an identity provider. */
export type OidcAccount = { readonly issuer: string; readonly subject: string };

/**
 * Inserts a sign-in in progress. Returns no row if there is one under this token.
 * @param userId null for a sign-in that is not accepted again
 * @param binding the account at the identity provider that the second factor will bind to the user
 */
export function insertSignIn(signIn: {
  readonly tokenHash: Buffer;
  readonly userId: number | null;
  readonly stage: 'second-factor' | 'link' | 'used';
  readonly binding?: OidcAccount | undefined;
  readonly expiresAt: Date;
}): Sql {
  const { tokenHash, userId, stage, binding, expiresAt } = signIn;
  return sql`
insert into sign_ins (token_hash, user_id, stage, oidc_issuer, oidc_subject, expires_at)
values (${tokenHash}, ${userId}, ${stage}, ${binding?.issuer ?? null}, ${binding?.subject ?? null},
  ${expiresAt})
on conflict do nothing returning token_hash`;
}
