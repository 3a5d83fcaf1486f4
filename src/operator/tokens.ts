import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Service } from '../context.ts';
import { readSigned, sign } from '../credentials.ts';
import { containing } from '../network.ts';
import { findTokenRow, touchToken } from '../operations/queries.ts';
import type { PortalRole, Role } from '../principal.ts';

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
  /** The roles that it has now. */
  readonly roles: readonly (Role | PortalRole)[];
  readonly merchantId: number | null;
  readonly stepUp: boolean;
  /** The user whose token it is; null if it is nobody's. */
  readonly userId: number | null;
};

/** A person that a token depends on, as the person is now. */
type Person = {
  readonly roles: readonly string[];
  readonly merchantId: number | null;
  readonly isActive: boolean;
};

export type TokenRow = {
  readonly id: number;
  readonly name: string;
  readonly roles: (Role | PortalRole)[];
  readonly merchant_id: number | null;
  readonly step_up: boolean;
  readonly user_id: number | null;
  readonly user_email: string | null;
  readonly people: readonly Person[];
  readonly networks: string[] | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
};

/**
 * Returns the roles that a token has now: those that its people have, too. An owner has all roles. Without
 * any, the token is suspended: its people are disabled, have lost their roles, or had to enroll again.
 */
export function rolesNow({
  roles,
  merchant_id,
  people,
}: Pick<TokenRow, 'roles' | 'merchant_id' | 'people'>): (Role | PortalRole)[] {
  return roles.filter((role) => people.every((person) => hasRole(person, role, merchant_id)));
}

/** Returns whether a person may give a token a role: of the operator, or of a merchant's portal. */
export function hasRole({ roles, merchantId, isActive }: Person, role: string, of: number | null): boolean {
  if (!isActive) return false;
  const isOwnDoor = merchantId === of;
  const isOwner = roles.includes('owner') && (isOwnDoor || merchantId === null);
  return isOwner || (isOwnDoor && roles.includes(role));
}

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
 * @returns undefined for a token that is unknown, expired, revoked, suspended, or not valid from that address
 */
export async function findToken(service: Service, text: string, ip: string): Promise<Token | undefined> {
  if (!isToken(service, text)) return undefined;
  const { db, clock } = service;
  const now = clock();
  const [row] = await db.query<TokenRow>(findTokenRow(hashToken(text)));
  if (!row || row.revoked_at || row.expires_at <= now) return undefined;
  const roles = rolesNow(row);
  if (roles.length === 0) return undefined;
  if (row.networks && !containing(row.networks)(ip)) return undefined;
  if (!row.last_used_at || now.getTime() - row.last_used_at.getTime() > TOUCH_MS)
    await db.query(touchToken(row.id, now));
  return {
    id: row.id,
    name: row.name,
    roles,
    merchantId: row.merchant_id,
    stepUp: row.step_up,
    userId: row.user_id,
  };
}

/** Returns the id of a token that is no longer accepted, for the audit. */
export async function findTokenId({ db }: Service, text: string): Promise<number | undefined> {
  const [row] = await db.query<TokenRow>(findTokenRow(hashToken(text)));
  return row?.id;
}
