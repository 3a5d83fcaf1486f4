import { PORTAL_ROLES, ROLES } from '../principal.ts';
import { invalid } from '../problem.ts';

/**
 * Returns the roles of a user, each once, in the order of the table.
 * @param merchantId null for a user of the operator
 * @throws Problem `invalid` for an unknown role, or if there is none
 */
export function checkRoles(roles: readonly string[], merchantId: number | null): string[] {
  const known: readonly string[] = merchantId === null ? ROLES : PORTAL_ROLES;
  if (roles.length === 0 || roles.some((role) => !known.includes(role))) {
    const whose = merchantId === null ? 'the operator' : 'a merchant';
    throw invalid('roles', 'enum', `of a user of ${whose} must be some of ${known.join(', ')}`);
  }
  return known.filter((role) => roles.includes(role));
}
