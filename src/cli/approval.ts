import type { Command } from 'commander';
import {
  type Approval,
  approveApproval,
  listApprovals,
  rejectApproval,
  showApproval,
  withdrawApproval,
} from '../operations/approval-operations.ts';
import { type SettingsJson, setLimit, setSettings, showSettings } from '../settings/settings.ts';
import { amountText, printFields, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseCurrencyCode, parseId, parseValue } from './parse.ts';
import { listCommand, performCommand } from './perform.ts';

const LISTED = '50';
const LISTED_MAX = 10_000;

type Json = { json?: boolean };

export function registerApproval(program: Command): void {
  const approval = program
    .command('approval')
    .description('operations that one person proposes and another approves');
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

function print({ maker, input, statement, effect, output, ...rest }: Approval): void {
  say(`${statement.text}.`);
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
        ['id', 'state', 'what', 'proposed by', 'proposed', 'decided by', 'reason'],
        found.map((each) => [
          each.id,
          each.state,
          each.statement.text,
          each.maker.name,
          each.createdAt.toISOString().slice(0, 16).replace('T', ' '),
          each.checker ?? '',
          each.reason ?? '',
        ]),
        ['what', 'proposed by', 'decided by', 'reason'],
      ),
  );
}

const VOUCHERS_MAX = 10_000_000;

type Options = { json?: boolean; approvalMode?: string; approvalVouchers?: string };

export function registerSettings(program: Command): void {
  const settings = program
    .command('settings')
    .description('settings that can be changed while the service runs');
  settings
    .command('show')
    .description('show the settings')
    .option('--json', 'print JSON')
    .action((options: Options) => performCommand(showSettings, {}, options, printSettings));
  settings
    .command('set')
    .description('change settings')
    .option(
      '--approval-mode <mode>',
      'two-people: another person approves; delay: the same one after 15 minutes',
    )
    .option('--approval-vouchers <count>', 'how many vouchers one request may change without approval')
    .option('--json', 'print JSON')
    .action(set);
  settings
    .command('limit <currency>')
    .description('set how much one person may move by hand in 24 hours')
    .option('--amount <amount>', 'in major units')
    .option('--default', 'the default of the currency')
    .option('--json', 'print JSON')
    .action(limit);
}

function printSettings({ limits, ...settings }: SettingsJson): void {
  printFields(settings);
  printTable(
    ['currency', 'one person in 24 hours', ''],
    limits.map(({ currency, amount, isDefault }) => [
      currency,
      amountText(amount, currency),
      isDefault ? 'default' : '',
    ]),
  );
}

type LimitOptions = Json & { amount?: string; default?: boolean };

async function limit(text: string, { amount, default: isDefault, ...options }: LimitOptions): Promise<void> {
  if ((amount === undefined) === !isDefault) wrongUsage('give either --amount or --default');
  const input = {
    currency: parseCurrencyCode(text),
    amount: amount === undefined ? null : Number(amount) === 0 ? 0 : parseValue(amount, '--amount'),
  };
  await performCommand(setLimit, input, options, printSettings);
}

async function set({ json, approvalMode, approvalVouchers }: Options): Promise<void> {
  const input = {
    ...(approvalMode !== undefined && {
      approvalMode: oneOf(approvalMode, '--approval-mode', ['two-people', 'delay']),
    }),
    ...(approvalVouchers !== undefined && {
      approvalVouchers: parseCount(approvalVouchers, '--approval-vouchers', 0, VOUCHERS_MAX),
    }),
  };
  if (Object.keys(input).length === 0)
    wrongUsage('name a setting to change (see `scrip settings set --help`)');
  await performCommand(setSettings, input, { json: json === true }, printSettings);
}
