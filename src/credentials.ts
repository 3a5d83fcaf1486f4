import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

/** Codes, PINs, identifiers and secrets, from the random generator of the system. */

/** Returns a voucher code: 12 digits, the first not 0, all codes equally likely. */
export function randomCode(): string {
  return String(randomInt(100_000_000_000, 1_000_000_000_000));
}

/** Returns a PIN: 4 digits, all PINs equally likely. */
export function randomPin(): string {
  return String(randomInt(10_000)).padStart(4, '0');
}

/** Returns the secret of an API key: 256 bits, shown once. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns an identifier of an API key. It is not secret. It has no colon, which follows it in HTTP Basic. */
export function newKeyId(): string {
  return `key_${randomBytes(12).toString('base64url').replace(/[-_]/g, 'x')}`;
}

/**
 * Whether a text could be an identifier of an API key. Text of digits only is refused: it could be a code
 * with its PIN.
 */
export function isKeyId(text: string): boolean {
  return /^key_(?!\d+$)[A-Za-z0-9]{16}$/.test(text);
}

/**
 * Hashes an API secret with SHA-256, for storage. A slow hash protects guessable secrets; 256 random bits do
 * not need one.
 */
export function hashSecret(secret: string): Buffer {
  // As a text with one byte in each character: the hash as bytes takes three times as long.
  return Buffer.from(hash('sha256', secret, 'binary'), 'latin1');
}

/** Compares two hashes of equal length in constant time. */
export function sameHash(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Returns the secret of a webhook endpoint: 256 bits in the form of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * Returns a token of 256 random bits and its SHA-256, which alone is stored: for a session, a sign-in in
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
