import type { Approval } from '../../src/operation.ts';
import { COMMANDS_ONLY } from '../../src/operations/commands-only.ts';
import { OPERATIONS } from '../../src/operations/table.ts';

/** How many people each change needs, from the declarations of the operations. */
export function approvalsText(): string {
  const operations = OPERATIONS.map(({ name, approval, roles }) => ({ name, approval, roles }));
  const commands = Object.entries(COMMANDS_ONLY).map(([words, { approval }]) => ({
    name: `scrip ${words}`,
    approval,
    roles: ['the command line'],
  }));
  const changes = [...operations, ...commands].flatMap(({ approval, ...each }) =>
    approval === null ? [] : [{ ...each, approval }],
  );
  const of = (people: 1 | 2) => changes.filter(({ approval }) => approval.people === people);
  return [
    '### Two people',
    '',
    '| operation | when | why | performed by | may also be proposed by | approved by |',
    '| --- | --- | --- | --- | --- | --- |',
    ...of(2).map(twoPeopleRow),
    '',
    '### One person',
    '',
    '| operation | why one is enough |',
    '| --- | --- |',
    ...of(1).map(({ name, approval }) => `| \`${name}\` | ${approval.why} |`),
    '',
  ].join('\n');
}

type Named = { readonly name: string; readonly approval: Approval; readonly roles: readonly string[] };

function twoPeopleRow({ name, approval, roles }: Named): string {
  if (approval.people === 1) return '';
  const when = approval.when?.map(({ text }) => text).join(', or ') ?? 'always';
  const { why, proposers, after } = approval;
  const by = [roles, proposers, approval.approvers ?? roles].map((each) => each.join(', ')).join(' | ');
  const but = after === null ? '' : `, but not by the person who approved \`${after}\` of the same subject`;
  return `| \`${name}\` | ${when} | ${why} | ${by}${but} |`;
}
