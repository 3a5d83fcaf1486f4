import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { hashOfBearer, hashSecret, ownerOfTotp } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { invalid, Problem } from '../problem.ts';
import { derived } from './begun.ts';
import { checkNewPassword, hashPassword } from './password.ts';
import {
  acceptInvitation,
  acceptTotpStep,
  deleteRecoveryCodes,
  findInvited,
  insertRecoveryCodes,
  listUsersByEmail,
  setSignedIn,
  takeRecoveryCode,
  type UserRow,
} from './queries.ts';
import { actorOfUser, beginSession, type Door, doorOf, endSessions, type Origin } from './sessions.ts';

/**
 * Second factors: a code of an authenticator app, or a recovery code. Each code is accepted once, even with
 * several processes.
 */

const RECOVERY_CODES = 10;
/** 120 bits: too many to be guessed from a hash, so that it need not be slow. */
const RECOVERY_BYTES = 15;
/** The digits and letters of a recovery code, without those that look alike (Crockford). */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** A second factor that a user sends. */
export type Factor = { readonly totp: string } | { readonly recoveryCode: string };

type FactorUser = { readonly id: number; readonly totp_secret: Buffer | null };

/** Returns whether a second factor is correct. It is not accepted a second time. */
export async function acceptFactor(
  { db, keys, clock }: Service,
  user: FactorUser,
  factor: Factor,
): Promise<boolean> {
  if ('recoveryCode' in factor) {
    return (
      (await db.query(takeRecoveryCode(user.id, hashRecoveryCode(factor.recoveryCode), clock()))).length > 0
    );
  }
  if (!user.totp_secret) return false;
  const step = totpStep(keys.openText(ownerOfTotp(user.id), user.totp_secret), factor.totp, clock());
  return step !== undefined && (await db.query(acceptTotpStep(user.id, step))).length > 0;
}

function newRecoveryCode(): string {
  let bits = BigInt(`0x${randomBytes(RECOVERY_BYTES).toString('hex')}`);
  let text = '';
  for (let at = 0; at < (RECOVERY_BYTES * 8) / 5; at++) {
    text = (at > 0 && at % 4 === 0 ? '-' : '') + text;
    text = DIGITS[Number(bits & 31n)] + text;
    bits >>= 5n;
  }
  return text;
}

/** Returns the hash of a recovery code. Hyphens, spaces and capitals do not matter. */
function hashRecoveryCode(code: string): Buffer {
  return hashSecret(`recovery ${code.toLowerCase().replace(/[^0-9a-z]/g, '')}`);
}

/**
 * Gives a user new recovery codes. The old ones become invalid.
 * @returns the codes, which are stored only as hashes
 */
export async function replaceRecoveryCodes(tx: Queries, userId: number): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode);
  await tx.query(deleteRecoveryCodes(userId));
  await tx.query(insertRecoveryCodes(userId, codes.map(hashRecoveryCode)));
  return codes;
}

/** Codes of authenticator apps: TOTP (RFC 6238) with six digits and a new code every 30 seconds. */

const PERIOD_S = 30;

function totpOf(secret: string, label: string): TOTP {
  return new TOTP({ issuer: 'Scrip', label, secret: Secret.fromBase32(secret), digits: 6, period: PERIOD_S });
}

const TOTP_SECRET_BYTES = 20;

/**
 * Returns the secret of the authenticator app that a browser is offered with an invitation: 160 bits in
 * base32, the form that apps accept. It is stored when the invitation is accepted. A thief who opened the
 * link, or an earlier one, in another browser has seen another secret.
 */
function offeredTotpSecret(service: Service, token: string, browser: string): string {
  const bits = derived(service, browser, `totp ${token}`).subarray(0, TOTP_SECRET_BYTES);
  return new Secret({ buffer: new Uint8Array(bits).buffer }).base32;
}

/** Returns the URI that an app reads from a QR code. */
function totpUri(secret: string, email: string): string {
  return totpOf(secret, email).toString();
}

/**
 * Returns the period of a code: the number of 30-second periods since 1970. The code of the period before is
 * accepted too, since typing takes time; that of the next one is not (RFC 6238, 5.2).
 * @returns undefined for a wrong code
 */
function totpStep(secret: string, code: string, now: Date): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const delta = totpOf(secret, '').validate({ token: code, timestamp: now.getTime(), window: 1 });
  return delta === null || delta > 0 ? undefined : Math.floor(now.getTime() / 1_000 / PERIOD_S) + delta;
}

/**
 * The acceptance of an invitation: a password, an authenticator app that shows the correct code, and recovery
 * codes for the user to keep.
 */

export type OpenInvitation = {
  readonly email: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly merchantId: number | null;
  readonly expiresAt: Date;
  /** The secret for the authenticator app. Each browser that opens the link is offered another one. */
  readonly totp: { readonly secret: string; readonly uri: string };
};

const unknownLink = () =>
  new Problem(
    'unauthorized',
    'this link has been used, has expired, or was replaced by a newer one: ask for another one',
  );

/**
 * Finds the user of an invitation.
 * @throws Problem `unauthorized` if the link is no longer valid, or belongs to the other door
 */
async function requireInvited({ db, keys, clock }: Service, door: Door, token: string): Promise<UserRow> {
  const tokenHash = hashOfBearer(keys, 'invitation', token);
  const [user] = tokenHash ? await db.query<UserRow>(findInvited(tokenHash, clock())) : [];
  if (!user || doorOf(user.merchant_id) !== door) throw unknownLink();
  return user;
}

/**
 * Returns the content of an invitation's page.
 * @param browser a random token in a cookie of the browser
 * @throws Problem `unauthorized`
 */
export async function openInvitation(
  service: Service,
  door: Door,
  token: string,
  browser: string,
): Promise<OpenInvitation> {
  const user = await requireInvited(service, door, token);
  const secret = offeredTotpSecret(service, token, browser);
  const { email, name, roles, merchant_id: merchantId, invitation_expires_at } = user;
  const expiresAt = invitation_expires_at as Date;
  return { email, name, roles, merchantId, expiresAt, totp: { secret, uri: totpUri(secret, email) } };
}

/** Returns what an attacker knows of a user's account. */
export async function wordsOf({ db }: Service, { email, name, merchant_id }: UserRow): Promise<string[]> {
  const merchant = merchant_id === null ? undefined : await findMerchant(db, merchant_id);
  return [email, name, ...(merchant ? [merchant.name] : [])];
}

/**
 * Returns the hash of a new password of a user. The portal compares a password with all accounts of an
 * address, so these have one salt.
 */
export async function hashPasswordOf(
  { db }: Service,
  { id, email, merchant_id: merchantId }: Pick<UserRow, 'id' | 'email' | 'merchant_id'>,
  password: string,
): Promise<string> {
  const accounts = merchantId === null ? [] : await db.query<UserRow>(listUsersByEmail(email));
  const others = accounts.filter((each) => each.merchant_id !== null && each.id !== id);
  return hashPassword(password, others.find((each) => each.password_hash)?.password_hash ?? undefined);
}

const NAME_LENGTH_MAX = 100;

export type Enroll = { readonly name: string; readonly password: string; readonly totp: string };

/**
 * Accepts an invitation and signs in.
 * @param browser the token of the browser that opened the invitation
 * @returns the token of the session and the recovery codes, neither of which is stored
 * @throws Problem `unauthorized` for the link; `invalid` for any other wrong field, and the link then stays
 *   valid
 */
export async function enroll(
  service: Service,
  door: Door,
  { token, browser }: { readonly token: string; readonly browser: string },
  { name, password, totp }: Enroll,
  origin: Origin,
): Promise<{ token: string; recoveryCodes: string[] }> {
  const user = await requireInvited(service, door, token);
  const called = name.trim();
  if (called === '' || called.length > NAME_LENGTH_MAX || /\p{C}/u.test(called))
    throw invalid('name', 'maxLength', `must have 1 to ${NAME_LENGTH_MAX} characters, all of them visible`);
  await checkNewPassword(password, [called, ...(await wordsOf(service, user))]);
  const { clock, db, keys } = service;
  const secret = offeredTotpSecret(service, token, browser);
  const step = totpStep(secret, totp, clock());
  if (step === undefined)
    throw invalid('totp', 'code', 'is not what the authenticator app shows now: wait for the next code');
  const passwordHash = await hashPasswordOf(service, user, password);
  return db.transaction(async (tx) => {
    await holdKeyRing(tx, keys);
    const sealed = keys.sealText(ownerOfTotp(user.id), secret);
    const accepted = { name: called, passwordHash, totp: { secret: sealed, step } };
    const [enrolled] = await tx.query(acceptInvitation(user.id, hashSecret(token), clock(), accepted));
    if (!enrolled) throw unknownLink();
    const recoveryCodes = await replaceRecoveryCodes(tx, user.id);
    await endSessions(tx, user.id);
    await tx.query(setSignedIn(user.id, clock()));
    const session = await beginSession(service, tx, user.id, origin, clock());
    const operator = { service, actor: actorOfUser(user, origin) };
    const after = { name: called, factor: 'totp' };
    await audit(tx, operator, { action: 'user.enroll', subject: `user ${user.id}`, after });
    return { token: session, recoveryCodes };
  });
}
