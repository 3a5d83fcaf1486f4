import { OTHER_ACTIONS } from '../../src/audit/entries.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';

/** The actions in the audit: those of operations from their declarations, and the others. */
export function auditText(): string {
  const actions = new Map<string, string>(Object.entries(OTHER_ACTIONS));
  for (const { name, audit, summary } of [...OPERATIONS, ...PORTAL_OPERATIONS])
    if (audit !== null && (audit === name || !actions.has(audit))) actions.set(audit, summary);
  const rows = [...actions].sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    '| action | what |',
    '| --- | --- |',
    ...rows.map(([name, what]) => `| \`${name}\` | ${what} |`),
  ].join('\n');
}
