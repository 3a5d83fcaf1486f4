import type { Command } from 'commander';
import {
  type Approval,
  approveApproval,
  listApprovals,
  rejectApproval,
  showApproval,
  withdrawApproval,
} from '../operator/approval-operations.ts';
import { printFields, printTable, say } from './output.ts';
import { parseCount, parseId } from './parse.ts';
import { listCommand, performCommand } from './perform.ts';

const LISTED = '50';
const LISTED_MAX = 10_000;

type Json = { json?: boolean };

export function registerApproval(program: Command): void {
  const approval = program
    .command('approval')
    .description('operations that one person proposed and another one approves');
  approval
    .command('list')
    .description('list approvals, newest first')
    .option('--waiting', 'only those that wait for a decision')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
  const one = (name: string, description: string) =>
    approval.command(`${name} <id>`).description(description).option('--json', 'print JSON');
  one('show', 'show an approval with its input and its effect').action((id: string, options: Json) =>
    performCommand(showApproval, { id: idOf(id) }, options, print),
  );
  one(
    'approve',
    'perform what was proposed; from the command line only with --break-glass and --reason',
  ).action((id: string, options: Json) =>
    performCommand(approveApproval, { id: idOf(id) }, options, () => say('approved')),
  );
  one('reject', 'reject what was proposed')
    .requiredOption('--comment <text>', 'why, for the person who proposed it')
    .action((id: string, { comment, ...options }: Json & { comment: string }) =>
      performCommand(rejectApproval, { id: idOf(id), comment }, options, () => say('rejected')),
    );
  one('withdraw', 'withdraw what was proposed').action((id: string, options: Json) =>
    performCommand(withdrawApproval, { id: idOf(id) }, options, () => say('withdrawn')),
  );
}

const idOf = (text: string) => String(parseId(text, 'approval'));

function print({ maker, input, effect, output, ...rest }: Approval): void {
  printFields({ ...rest, maker: maker.name, input: JSON.stringify(input) });
  for (const { action, subject, before, after } of effect ?? [])
    say(`${action} of ${subject}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`);
  if (output !== null) say(`output: ${JSON.stringify(output)}`);
}

async function list({
  waiting,
  limit,
  ...options
}: Json & { waiting?: boolean; limit: string }): Promise<void> {
  const most = parseCount(limit, '--limit', 1, LISTED_MAX);
  await listCommand<typeof listApprovals.input, Approval>(
    listApprovals as never,
    { waiting: waiting ?? false },
    most,
    options,
    (found) =>
      printTable(
        ['id', 'state', 'operation', 'proposed by', 'proposed', 'decided by', 'reason'],
        found.map((each) => [
          each.id,
          each.state,
          each.operation,
          each.maker.name,
          each.createdAt.toISOString().slice(0, 16).replace('T', ' '),
          each.checker ?? '',
          each.reason ?? '',
        ]),
        ['proposed by', 'decided by', 'reason'],
      ),
  );
}
