import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Service } from '../context.ts';
import { hashSecret, ownerOfTotp } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { acceptTotpStep, deleteRecoveryCodes, insertRecoveryCodes, takeRecoveryCode } from './queries.ts';

/**
 * Second factors: a code of an authenticator app, or a recovery code. Each is accepted once, in however many
 * processes.
 */

const RECOVERY_CODES = 10;
/** 80 bits. */
const RECOVERY_BYTES = 10;
/** Digits and letters without those that look alike (Crockford). */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** What a user sends as its second factor: one of these. */
export type Factor = { readonly totp: string } | { readonly recoveryCode: string };

type FactorUser = { readonly id: number; readonly totp_secret: Buffer | null };

/** Whether a second factor is right; it is not right a second time. */
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

/** Spelled as it may be: with or without hyphens and spaces, in capitals. */
function hashRecoveryCode(code: string): Buffer {
  return hashSecret(`recovery ${code.toLowerCase().replace(/[^0-9a-z]/g, '')}`);
}

/**
 * Gives a user new recovery codes; the old ones are of no use any more. @returns them, which are stored as
 * hashes only
 */
export async function replaceRecoveryCodes(tx: Queries, userId: number): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode);
  await tx.query(deleteRecoveryCodes(userId));
  await tx.query(insertRecoveryCodes(userId, codes.map(hashRecoveryCode)));
  return codes;
}

/** Codes of authenticator apps: TOTP (RFC 6238), six digits, a new one every 30 seconds. */

const PERIOD_S = 30;
/** Steps before and after the present one that are accepted, for clocks that differ. */
const WINDOW = 1;

function totpOf(secret: string, label: string): TOTP {
  return new TOTP({ issuer: 'Scrip', label, secret: Secret.fromBase32(secret), digits: 6, period: PERIOD_S });
}

/** A new secret: 160 bits, in base32, as apps take it. */
export function newTotpSecret(): string {
  return new Secret({ size: 20 }).base32;
}

/** The address that an app reads from a QR code. */
export function totpUri(secret: string, email: string): string {
  return totpOf(secret, email).toString();
}

/**
 * The step of a code: the number of its 30 seconds since 1970.
 * @returns undefined for a wrong code
 */
function totpStep(secret: string, code: string, now: Date): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const delta = totpOf(secret, '').validate({ token: code, timestamp: now.getTime(), window: WINDOW });
  return delta === null ? undefined : Math.floor(now.getTime() / 1_000 / PERIOD_S) + delta;
}
