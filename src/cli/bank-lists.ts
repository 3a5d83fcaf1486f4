import type { Command } from 'commander';
import { type BankStatement, bank as operations } from '../operator/bank.ts';
import { type BankEntry, type BankMovement, bankMatching } from '../operator/bank-matching.ts';
import { amountText, printTable } from './output.ts';
import { parseCount, parseText } from './parse.ts';
import { LISTED_MAX, listCommand } from './perform.ts';

const NAME_MAX = 100;
const LISTED = '50';

/** Adds the lists of imported entries, and of entries to be matched. */
export function addLists(bank: Command): void {
  const limit = [`--limit <count>`, `how many, up to ${LISTED_MAX}`, LISTED] as const;
  bank
    .command('statements')
    .description('list the statements that were imported, newest first')
    .option('--account <name>', 'only those of this bank account')
    .option(...limit)
    .option('--json', 'print JSON')
    .action(statements);
  bank
    .command('entries')
    .description('list entries of the bank, newest first, and what they are matched with')
    .option('--account <name>', 'only those of this bank account')
    .option('--open', 'only those that are not fully matched')
    .option(...limit)
    .option('--json', 'print JSON')
    .action(entries);
  bank
    .command('movements')
    .description('list the movements that the bank should show, newest first')
    .option('--open', 'only those that are not fully matched')
    .option(...limit)
    .option('--json', 'print JSON')
    .action(movements);
}

type ListOptions = { json?: boolean; account?: string; open?: boolean; limit: string };

const filtersOf = ({ account: name, open }: ListOptions) => ({
  ...(name !== undefined && { account: parseText(name, '--account', NAME_MAX) }),
  ...(open && { open }),
});
const limitOf = ({ limit }: ListOptions) => parseCount(limit, '--limit', 1, LISTED_MAX);

async function statements(options: ListOptions): Promise<void> {
  await listCommand(
    operations.statements,
    filtersOf(options),
    limitOf(options),
    options,
    (found: BankStatement[]) =>
      printTable(
        ['id', 'account', 'format', 'entries', 'closing', 'on', 'gap', 'missing', 'imported', 'by'],
        found.map((each) => [
          each.id,
          each.account,
          each.format,
          String(each.entries),
          each.closing === null ? '' : `${amountText(each.closing, each.currency)} ${each.currency}`,
          each.closingOn ?? '',
          each.gap ? amountText(each.gap, each.currency) : '',
          each.missing ? amountText(each.missing, each.currency) : '',
          each.importedAt.toISOString().slice(0, 16).replace('T', ' '),
          each.importedBy,
        ]),
        ['account', 'by'],
      ),
  );
}

async function entries(options: ListOptions): Promise<void> {
  await listCommand(
    bankMatching.entries,
    filtersOf(options),
    limitOf(options),
    options,
    (found: BankEntry[]) =>
      printTable(
        ['id', 'account', 'date', 'amount', 'currency', 'text', 'matched with'],
        found.map((each) => [
          each.id,
          each.account,
          each.bookedOn,
          amountText(each.amount, each.currency),
          each.currency,
          each.description,
          each.movements.map(({ kind, reference }) => `${kind} ${reference ?? ''}`.trim()),
        ]),
        ['account', 'text', 'matched with'],
      ),
  );
}

async function movements(options: ListOptions): Promise<void> {
  await listCommand(
    bankMatching.movements,
    filtersOf(options),
    limitOf(options),
    options,
    (found: BankMovement[]) =>
      printTable(
        ['transaction', 'date', 'kind', 'amount', 'currency', 'reference'],
        found.map((each) => [
          each.transactionId,
          each.day,
          each.kind,
          amountText(each.amount, each.currency),
          each.currency,
          each.settlement ?? each.reference ?? '',
        ]),
        ['reference'],
      ),
  );
}
