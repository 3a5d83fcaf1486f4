import { invalid } from '../operator/problem.ts';

/** The roles of the operator's people. Rights of several roles add up. */
export const OPERATOR_ROLES = ['owner', 'finance', 'support', 'operations', 'developer', 'auditor'] as const;

/** The roles of a merchant's own people, in its portal. */
export const PORTAL_ROLES = ['owner', 'finance', 'operations', 'cashier', 'developer', 'viewer'] as const;

/**
 * The roles of a user, each once, in the order of the table.
 * @param merchantId null for a user of the operator
 * @throws Problem `invalid` for an unknown role, or none
 */
export function checkRoles(roles: readonly string[], merchantId: number | null): string[] {
  const known: readonly string[] = merchantId === null ? OPERATOR_ROLES : PORTAL_ROLES;
  if (roles.length === 0 || roles.some((role) => !known.includes(role))) {
    const whose = merchantId === null ? 'the operator' : 'a merchant';
    throw invalid('roles', 'enum', `of a user of ${whose} must be some of ${known.join(', ')}`);
  }
  return known.filter((role) => roles.includes(role));
}
