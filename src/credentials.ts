import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

/** Codes, PINs, identifiers and secrets, from the system's generator. */

/** A voucher code: 12 digits, the first not 0, without bias. */
export function randomCode(): string {
  return String(randomInt(100_000_000_000, 1_000_000_000_000));
}

/** A PIN: 4 digits, without bias. */
export function randomPin(): string {
  return String(randomInt(10_000)).padStart(4, '0');
}

/** The secret of an API key: 256 bits, shown once. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** An identifier of an API key. It is not secret, and has no colon, which follows it in HTTP Basic. */
export function newKeyId(): string {
  return `key_${randomBytes(12).toString('base64url').replace(/[-_]/g, 'x')}`;
}

/**
 * Whether a text could be an identifier of an API key. One with digits only is never made, and could be
 * a code with its PIN.
 */
export function isKeyId(text: string): boolean {
  return /^key_(?!\d+$)[A-Za-z0-9]{16}$/.test(text);
}

/**
 * API secrets are stored as SHA-256. A slow hash protects guessable secrets; 256 random bits need none.
 */
export function hashSecret(secret: string): Buffer {
  // As a text of one byte a character. The hash as bytes takes three times as long.
  return Buffer.from(hash('sha256', secret, 'binary'), 'latin1');
}

/** Compares two hashes of equal length in constant time. */
export function sameHash(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The secret of a webhook endpoint: 256 bits in the form of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * A token of 256 random bits, of which only the SHA-256 is stored: for a session, a sign-in in
 * progress, or an invitation.
 */
export function newBearer(): { readonly token: string; readonly tokenHash: Buffer } {
  const token = newSecret();
  return { token, tokenHash: hashSecret(token) };
}

/** The owner under which the secret of a user's authenticator app is sealed. */
export function ownerOfTotp(userId: number): string {
  return `user ${userId} totp`;
}
