import { OPERATIONS } from '../../src/operations/table.ts';
import { ROLES } from '../../src/principal.ts';

/** Which role performs, or only proposes, each operation of the operator. */
export function rightsText(): string {
  const rows = OPERATIONS.map(({ name, roles, approval }) => {
    const proposers = approval?.people === 2 ? approval.proposers : [];
    const cells = ROLES.map((role) => {
      if (roles.includes(role)) return 'yes';
      return proposers.includes(role) ? 'proposes' : '';
    });
    return `| \`${name}\` | ${cells.join(' | ')} |`;
  });
  return [
    `| operation | ${ROLES.join(' | ')} |`,
    `| --- |${' --- |'.repeat(ROLES.length)}`,
    ...rows.sort(),
  ].join('\n');
}
