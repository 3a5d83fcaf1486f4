import type { Command } from 'commander';
import { reconcile } from '../ledger/reconcile.ts';
import { withService } from './open.ts';
import { printJson, printTable, say, toJson } from './output.ts';

export function registerReconcile(program: Command): void {
  program
    .command('reconcile')
    .description('prove the books: every balance, journal entry and batch; exit status 1 if anything differs')
    .option('--json', 'print JSON')
    .action(run);
}

async function run(options: { json?: boolean }): Promise<void> {
  await withService(async (service) => {
    const result = await reconcile(service);
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
    say(result.ok ? 'Everything agrees.' : 'The books differ.');
  });
}
