import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Service } from '../context.ts';
import { readSigned, sign } from '../credentials.ts';

/**
 * The text of a token: a prefix, 43 characters of 128 random bits with a signature of this service, and 6 of
 * a checksum, so that secret scanners recognize it.
 */

const PREFIX = 'scrop_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_BYTES = 16;
const SIGNED_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const FORM = /^scrop_[0-9A-Za-z]{49}$/;

function base62(number: bigint, length: number): string {
  let text = '';
  for (let left = number; text.length < length; left /= 62n) text = DIGITS[Number(left % 62n)] + text;
  return text;
}

const checksumOf = (body: string) => base62(BigInt(crc32(body)), CHECKSUM_LENGTH);

/** Returns a new token, which is shown once. */
export function newToken({ keys }: Service): string {
  const signed = sign(keys, 'operator token', randomBytes(RANDOM_BYTES));
  const body = PREFIX + base62(BigInt(`0x${signed.toString('hex')}`), SECRET_LENGTH);
  return body + checksumOf(body);
}

/** Returns whether this service has made a token. Other texts need no database query. */
export function isToken({ keys }: Service, text: string): boolean {
  if (!FORM.test(text) || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH))
    return false;
  const digits = [...text.slice(PREFIX.length, -CHECKSUM_LENGTH)];
  const number = digits.reduce((sum, digit) => sum * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
  const signed = Buffer.from(number.toString(16).padStart(SIGNED_BYTES * 2, '0'), 'hex');
  return signed.length === SIGNED_BYTES && readSigned(keys, 'operator token', signed) !== undefined;
}

/**
 * Returns the hash under which a token is stored. A slow hash protects guessable secrets; 128 random bits
 * need none.
 */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
