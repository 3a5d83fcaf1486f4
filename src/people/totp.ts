import { Secret, TOTP } from 'otpauth';

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
export function totpStep(secret: string, code: string, now: Date): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const delta = totpOf(secret, '').validate({ token: code, timestamp: now.getTime(), window: WINDOW });
  return delta === null ? undefined : Math.floor(now.getTime() / 1_000 / PERIOD_S) + delta;
}
