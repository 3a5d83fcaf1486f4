import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Service } from '../context.ts';
import { readSigned, sign } from '../credentials.ts';
import { containing } from '../network.ts';
import type { PortalRole, Role } from '../principal.ts';
import { findTokenRow, touchToken } from './queries.ts';

/**
 * The prefix of tokens for machines. It is followed by 43 characters of 128 random bits with a signature of
 * this service, and 6 of a checksum, so that secret scanners recognize a token.
 */

const PREFIX = 'scrop_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_BYTES = 16;
const SIGNED_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const FORM = /^scrop_[0-9A-Za-z]{49}$/;
/** The shortest interval between two updates of the last use. */
const TOUCH_MS = 60_000;

export type Token = {
  readonly id: number;
  readonly name: string;
  readonly roles: readonly (Role | PortalRole)[];
  readonly merchantId: number | null;
  readonly stepUp: boolean;
  /** The user who created the token; null if no person did. */
  readonly userId: number | null;
};

type Row = {
  id: number;
  name: string;
  roles: (Role | PortalRole)[];
  merchant_id: number | null;
  step_up: boolean;
  user_id: number | null;
  networks: string[] | null;
  expires_at: Date;
  revoked_at: Date | null;
  last_used_at: Date | null;
};

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

/**
 * Finds the token of a text.
 * @param ip the address that sent it
 * @returns undefined for a token that is unknown, expired, revoked, or not valid from that address
 */
export async function findToken(service: Service, text: string, ip: string): Promise<Token | undefined> {
  if (!isToken(service, text)) return undefined;
  const { db, clock } = service;
  const now = clock();
  const [row] = await db.query<Row>(findTokenRow(hashToken(text)));
  if (!row || row.revoked_at || row.expires_at <= now) return undefined;
  if (row.networks && !containing(row.networks)(ip)) return undefined;
  if (!row.last_used_at || now.getTime() - row.last_used_at.getTime() > TOUCH_MS)
    await db.query(touchToken(row.id, now));
  return {
    id: row.id,
    name: row.name,
    roles: row.roles,
    merchantId: row.merchant_id,
    stepUp: row.step_up,
    userId: row.user_id,
  };
}
