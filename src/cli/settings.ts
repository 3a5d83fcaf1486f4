import type { Command } from 'commander';
import { setSettings, showSettings } from '../operator/settings.ts';
import { printFields, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseValue } from './parse.ts';
import { performCommand } from './perform.ts';

const VOUCHERS_MAX = 10_000_000;

type Options = { json?: boolean; approvalMode?: string; approvalAmount?: string; approvalVouchers?: string };

export function registerSettings(program: Command): void {
  const settings = program
    .command('settings')
    .description('settings that are changed while the service runs');
  settings
    .command('show')
    .description('show the settings')
    .option('--json', 'print JSON')
    .action((options: Options) => performCommand(showSettings, {}, options, printFields));
  settings
    .command('set')
    .description('change settings')
    .option(
      '--approval-mode <mode>',
      'two-people: another person approves; delay: the same one after 15 minutes',
    )
    .option('--approval-amount <amount>', 'the amount, in major units, above which money needs approval')
    .option('--approval-vouchers <count>', 'how many vouchers one request may change without approval')
    .option('--json', 'print JSON')
    .action(set);
}

async function set({ json, approvalMode, approvalAmount, approvalVouchers }: Options): Promise<void> {
  const input = {
    ...(approvalMode !== undefined && {
      approvalMode: oneOf(approvalMode, '--approval-mode', ['two-people', 'delay']),
    }),
    ...(approvalAmount !== undefined && { approvalAmount: parseValue(approvalAmount, '--approval-amount') }),
    ...(approvalVouchers !== undefined && {
      approvalVouchers: parseCount(approvalVouchers, '--approval-vouchers', 0, VOUCHERS_MAX),
    }),
  };
  if (Object.keys(input).length === 0)
    wrongUsage('name a setting to change (see `scrip settings set --help`)');
  await performCommand(setSettings, input, { json: json === true }, printFields);
}
