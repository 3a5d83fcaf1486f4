import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Actor, ActorKind, Service } from '../context.ts';
import { containing } from '../network.ts';
import { findTokenRow, touchToken } from './queries.ts';

/** The roles of people and tokens. The rights of several roles add up. */
export const ROLES = ['owner', 'finance', 'support', 'operations', 'developer', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** The roles of a merchant's own users in its portal. */
export const PORTAL_ROLES = ['owner', 'finance', 'operations', 'cashier', 'developer', 'viewer'] as const;
export type PortalRole = (typeof PORTAL_ROLES)[number];

/**
 * The caller of an operation: a token, a user with a session, or an account of the machine on the command
 * line. The command line may break the glass, and then performs alone what two people would have to agree on.
 */
export type Principal = {
  readonly kind: Exclude<ActorKind, 'service'>;
  /** The id of the token or the user; null for the command line. */
  readonly id: string | null;
  /** The user, or the creator of the token; null for the command line and for tokens that it created. */
  readonly userId: number | null;
  /** The name in the audit. */
  readonly name: string;
  readonly roles: readonly (Role | PortalRole)[];
  /** The merchant that the user or token belongs to; null for those of the operator. */
  readonly merchantId: number | null;
  /** The origin of the request: an address, or the account and the machine. */
  readonly origin: string;
  /** Null for the command line. */
  readonly requestId: string | null;
  /**
   * Whether the principal may run operations of the risk `step-up`: a second factor was given within five
   * minutes, or the token carries the right.
   */
  readonly steppedUp: boolean;
};

/** Returns the actor of a principal's changes. */
export function actorOf({ kind, id, name, origin, requestId }: Principal, reason: string | null): Actor {
  return { kind, id, name, origin, requestId, reason };
}

/**
 * The roles that each right needs: the rows of the table of rights (docs/reference/operator-api.md, "Roles").
 */

/** Everything, with codes masked. */
export const SEE = ['owner', 'finance', 'operations', 'auditor'] as const;
/** Vouchers, transactions, merchants, and everything that belongs to them. */
export const SEE_VOUCHERS = ['owner', 'finance', 'support', 'operations', 'auditor'] as const;
/** API keys and webhooks. */
export const SEE_KEYS = ['owner', 'finance', 'operations', 'developer', 'auditor'] as const;
/** Block, unblock, unlock a PIN, extend and replace vouchers. */
export const CARE = ['owner', 'support', 'operations'] as const;
/** Floats and corrections: everything that moves money. */
export const MONEY = ['owner', 'finance'] as const;
/** Merchants, products, limits and batches. */
export const MANAGE = ['owner', 'operations'] as const;
/** API keys and webhooks. */
export const CONNECT = ['owner', 'operations', 'developer'] as const;
/** Tokens, users, settings and the key ring. */
export const GOVERN = ['owner'] as const;
export const SEE_TOKENS = ['owner', 'auditor'] as const;
/** Export the books. */
export const EXPORT = ['owner', 'finance', 'auditor'] as const;
/** Verify the books and the audit. */
export const VERIFY = ['owner', 'finance', 'operations', 'auditor'] as const;

/**
 * The prefix of tokens for machines. It is followed by 43 characters of 256 random bits, and 6 of a checksum,
 * so that secret scanners recognize a token.
 */

const PREFIX = 'scrop_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
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
export function newToken(): string {
  const body = PREFIX + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), SECRET_LENGTH);
  return body + checksumOf(body);
}

/** Returns whether a text has the form and the checksum of a token. Other texts need no database query. */
function isToken(text: string): boolean {
  return FORM.test(text) && checksumOf(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH);
}

/**
 * Returns the hash under which a token is stored. A slow hash protects guessable secrets; 256 random bits
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
export async function findToken(
  { db, clock }: Service,
  text: string,
  ip: string,
): Promise<Token | undefined> {
  if (!isToken(text)) return undefined;
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
