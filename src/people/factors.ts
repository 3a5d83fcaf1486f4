import { randomInt } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Service } from '../context.ts';
import { hashSecret, ownerOfTotp } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { derived } from './begun.ts';
import type { Account } from './users.ts';

/**
 * Second factors: a code of an authenticator app, or a recovery code. Each code is accepted once, even with
 * several processes.
 */

const RECOVERY_CODES = 10;
/** Groups of four digits, together 120 bits: too many to be guessed from a hash, which need not be slow. */
const RECOVERY_GROUPS = 6;
/** The digits and letters of a recovery code, without those that look alike (Crockford). */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** A second factor that a user sends. */
export type Factor = { readonly totp: string } | { readonly recoveryCode: string };

/** Returns whether a second factor is correct. It is not accepted a second time. */
export async function acceptFactor(
  { db, keys, clock, wallClock }: Service,
  user: Pick<Account, 'id' | 'totpSecret'>,
  factor: Factor,
): Promise<boolean> {
  if ('recoveryCode' in factor) {
    const [used] = await db.query(sql`
update recovery_codes set used_at = ${clock()}
where user_id = ${user.id} and code_hash = ${hashRecoveryCode(factor.recoveryCode)} and used_at is null
returning user_id`);
    return used !== undefined;
  }
  if (!user.totpSecret) return false;
  const step = totpStep(keys.openText(ownerOfTotp(user.id), user.totpSecret), factor.totp, wallClock());
  if (step === undefined) return false;
  const [accepted] = await db.query(sql`
update users set totp_step = ${step}
where id = ${user.id} and (totp_step is null or totp_step < ${step}) returning id`);
  return accepted !== undefined;
}

function newRecoveryCode(): string {
  const digits = () => Array.from({ length: 4 }, () => DIGITS[randomInt(DIGITS.length)]).join('');
  return Array.from({ length: RECOVERY_GROUPS }, digits).join('-');
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
  await tx.query(sql`delete from recovery_codes where user_id = ${userId}`);
  await tx.query(sql`
insert into recovery_codes (user_id, code_hash)
select ${userId}, h.hash from unnest(${codes.map(hashRecoveryCode)}::bytea[]) as h (hash)`);
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
export function offeredTotpSecret(service: Service, token: string, browser: string): string {
  const bits = derived(service, browser, `totp ${token}`).subarray(0, TOTP_SECRET_BYTES);
  return new Secret({ buffer: new Uint8Array(bits).buffer }).base32;
}

/** Returns the URI that an app reads from a QR code. */
export function totpUri(secret: string, email: string): string {
  return totpOf(secret, email).toString();
}

/**
 * Returns the period of a code: the number of 30-second periods since 1970. The code of the period before is
 * accepted too, since typing takes time; that of the next one is not (RFC 6238, 5.2).
 * @returns undefined for a wrong code
 */
export function totpStep(secret: string, code: string, now: Date): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const delta = totpOf(secret, '').validate({ token: code, timestamp: now.getTime(), window: 1 });
  return delta === null || delta > 0 ? undefined : Math.floor(now.getTime() / 1_000 / PERIOD_S) + delta;
}
