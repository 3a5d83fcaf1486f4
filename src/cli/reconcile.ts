import type { Command } from 'commander';
import { reconcile } from '../ledger/reconcile.ts';
import { withService } from './open.ts';
import { printJson, printTable, say, toJson } from './output.ts';

export function registerReconcile(program: Command): void {
  program
    .command('reconcile')
    .description('prove the books: every balance, journal entry and batch; exit status 1 if anything differs')
    .option('--full', 'read everything, not only what came after the last closed day')
    .option('--json', 'print JSON')
    .action(run);
}

async function run(options: { full?: boolean; json?: boolean }): Promise<void> {
  await withService(async (service) => {
    const result = await reconcile(service, { sinceClosing: !options.full });
    if (!result.ok) process.exitCode = 1;
    if (options.json) return printJson(result);
    printTable(
      ['check', 'checked', 'result'],
      result.checks.map(({ name, ok, checked }) => [name, String(checked), ok ? 'ok' : 'DIFFERS']),
    );
    printTable(
      ['accounts', 'currency', 'balance'],
      result.totals.map(({ kind, currency, balance }) => [kind, currency, balance]),
    );
    for (const { name, differing } of result.checks) {
      for (const each of differing) say(`${name}: ${toJson(each)}`);
    }
    if (result.since !== null)
      say(
        `Read what came after ${result.since}: \`scrip books verify\` proves the closed days, --full reads all.`,
      );
    say(result.ok ? 'Everything agrees.' : 'The books differ.');
  });
}
