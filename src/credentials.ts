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

/** The form of an identifier of an API key. Digits only are none: they could be a code with its PIN. */
export const KEY_ID = /^key_(?!\d+$)[A-Za-z0-9]{16}$/;

/** Whether a text could be an identifier of an API key. */
export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
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

/** Makes keyed hashes, as the key ring does. */
type Signer = { fingerprintOf(text: string): Buffer };

/** The purpose of a signed token. A token of one purpose is not accepted for another. */
type Purpose = 'session' | 'sign-in' | 'invitation' | 'device' | 'operator token' | `cursor ${string}`;

/** The length of a signature: nobody guesses 128 bits. */
const SIGNATURE_BYTES = 16;

/** Returns the signature of bytes: a keyed hash, which nobody can make without the key ring. */
function signatureOf(keys: Signer, purpose: Purpose, bytes: Uint8Array): Buffer {
  const text = Buffer.from(bytes).toString('base64url');
  return keys.fingerprintOf(`signed ${purpose} ${text}`).subarray(0, SIGNATURE_BYTES);
}

/** Returns bytes with their signature. */
export function sign(keys: Signer, purpose: Purpose, bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, signatureOf(keys, purpose, bytes)]);
}

/** Returns the bytes that this service has signed; undefined if the signature is forged. */
export function readSigned(keys: Signer, purpose: Purpose, signed: Uint8Array): Uint8Array | undefined {
  const bytes = signed.subarray(0, -SIGNATURE_BYTES);
  const signature = signed.subarray(-SIGNATURE_BYTES);
  return sameHash(signature, signatureOf(keys, purpose, bytes)) ? bytes : undefined;
}

const BEARER_RANDOM_BYTES = 16;

/**
 * Returns a token of 128 random bits with their signature, and its SHA-256, which alone is stored: for a
 * session, a sign-in in progress, or an invitation. A forged token is refused without a look-up.
 */
export function newBearer(
  keys: Signer,
  purpose: Purpose,
): { readonly token: string; readonly tokenHash: Buffer } {
  const token = sign(keys, purpose, randomBytes(BEARER_RANDOM_BYTES)).toString('base64url');
  return { token, tokenHash: hashSecret(token) };
}

/** Returns the hash under which a token is stored; undefined if this service has not made it. */
export function hashOfBearer(keys: Signer, purpose: Purpose, token: string): Buffer | undefined {
  const signed = Buffer.from(token, 'base64url');
  return readSigned(keys, purpose, signed) && hashSecret(token);
}

/** The owner under which the secret of a user's authenticator app is sealed. */
export function ownerOfTotp(userId: number): string {
  return `user ${userId} totp`;
}
