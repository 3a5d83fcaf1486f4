import type { Approval } from '../../src/operation.ts';
import { COMMANDS_ONLY } from '../../src/operator/commands-only.ts';
import { OPERATIONS } from '../../src/operator/table.ts';

/** How many people each change needs, from the declarations of the operations. */
export function approvalsText(): string {
  const operations = OPERATIONS.map(({ name, approval }) => ({ name, approval }));
  const commands = Object.entries(COMMANDS_ONLY).map(([words, { approval }]) => ({
    name: `scrip ${words}`,
    approval,
  }));
  const changes = [...operations, ...commands].flatMap(({ name, approval }) =>
    approval === null ? [] : [{ name, approval }],
  );
  const of = (people: 1 | 2) => changes.filter(({ approval }) => approval.people === people);
  return [
    '## Two people',
    '',
    '| operation | when | why | may also be proposed by |',
    '| --- | --- | --- | --- |',
    ...of(2).map(({ name, approval }) => twoPeopleRow(name, approval)),
    '',
    '## One person',
    '',
    '| operation | why one is enough |',
    '| --- | --- |',
    ...of(1).map(({ name, approval }) => `| \`${name}\` | ${approval.why} |`),
    '',
  ].join('\n');
}

function twoPeopleRow(name: string, approval: Approval): string {
  if (approval.people === 1) return '';
  const when = approval.when?.map(({ text }) => text).join(', or ') ?? 'always';
  return `| \`${name}\` | ${when} | ${approval.why} | ${approval.proposers.join(', ')} |`;
}
