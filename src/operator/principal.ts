import type { Actor, ActorKind } from '../context.ts';

/** The roles of people and tokens. Rights of several roles add up. */
export const ROLES = ['owner', 'finance', 'support', 'operations', 'developer', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** The roles of a merchant's own people, in its portal. */
export const PORTAL_ROLES = ['owner', 'finance', 'operations', 'cashier', 'developer', 'viewer'] as const;
export type PortalRole = (typeof PORTAL_ROLES)[number];

/**
 * Who calls an operation: a token, a user by its session, or an account of the machine by the command
 * line, which may break the glass: then it performs alone what two people would have to agree on.
 */
export type Principal = {
  readonly kind: Exclude<ActorKind, 'service'>;
  /** Of the token or the user; null for the command line. */
  readonly id: string | null;
  /** The user, or the one that made the token; null for the command line and the tokens that it made. */
  readonly userId: number | null;
  /** As the audit names it. */
  readonly name: string;
  readonly roles: readonly (Role | PortalRole)[];
  /** The merchant whose user or token it is; null for the operator's own. */
  readonly merchantId: number | null;
  /** From where: an address, or the account and the machine. */
  readonly origin: string;
  /** Null for the command line. */
  readonly requestId: string | null;
  /**
   * Whether it may run operations of the risk `step-up`: a second factor was given within five minutes,
   * or the token carries the right.
   */
  readonly steppedUp: boolean;
};

/** The actor of a principal's changes. */
export function actorOf({ kind, id, name, origin, requestId }: Principal, reason: string | null): Actor {
  return { kind, id, name, origin, requestId, reason };
}
