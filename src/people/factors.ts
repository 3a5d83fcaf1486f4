import { randomBytes } from 'node:crypto';
import type { Service } from '../context.ts';
import { hashSecret, ownerOfTotp } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { acceptTotpStep, deleteRecoveryCodes, insertRecoveryCodes, takeRecoveryCode } from './queries.ts';
import { totpStep } from './totp.ts';

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
