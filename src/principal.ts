import type { Actor, ActorKind } from './context.ts';

/** The callers of operations, their roles, and the rights that each role has. */

/** The roles of people and tokens. The rights of several roles add up. */
export const ROLES = ['owner', 'finance', 'support', 'operations', 'developer', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** The roles of a merchant's own users in its portal. */
export const PORTAL_ROLES = ['owner', 'finance', 'operations', 'cashier', 'developer', 'viewer'] as const;
export type PortalRole = (typeof PORTAL_ROLES)[number];
/** Each role once, at the operator or at a merchant. */
export const ALL_ROLES: readonly (Role | PortalRole)[] = [...new Set([...ROLES, ...PORTAL_ROLES])];

/**
 * The caller of an operation: a token, a user with a session, or an account of the machine on the command
 * line. The command line may break the glass, and then performs alone what two people would have to agree on.
 */
export type Principal = {
  readonly kind: Exclude<ActorKind, 'service' | 'alone'>;
  /** The id of the token or the user; null for the command line. */
  readonly id: string | null;
  /** The user, or the one whose token it is; null for the command line, and for a token of nobody. */
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
