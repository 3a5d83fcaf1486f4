import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { Static } from 'typebox';
import {
  type BankAccount,
  type BankMapping,
  type ImportReport,
  bank as operations,
} from '../operator/bank.ts';
import { bankMatching } from '../operator/bank-matching.ts';
import { addLists } from './bank-lists.ts';
import { amountText, fail, numberOf, printTable, say, wrongUsage } from './output.ts';
import {
  oneOf,
  parseCurrencyCode,
  parseDay,
  parseId,
  parseText,
  parseTransactionId,
  parseValue,
  repeat,
} from './parse.ts';
import { listCommand, performCommand } from './perform.ts';

const NAME_MAX = 100;
const COLUMN_MAX = 200;
/** The largest file. A bank's statement is far smaller. */
const FILE_MAX_BYTES = 64 * 1024 * 1024;
const SHOWN_MAX = 50;

type Json = { json?: boolean };

export function registerBank(program: Command): void {
  const bank = program.command('bank').description('statements of your bank, matched with the books');
  bank
    .command('account <name>')
    .description('name one of your bank accounts')
    .requiredOption('--currency <code>', 'its currency, which cannot be changed')
    .option('--iban <iban>', 'its IBAN or number, as statements state it (default: that of the first one)')
    .option('--own <amount>', 'your own money in it, which is not in the books (default: unchanged)')
    .option('--from <day>', 'the first day of --own (default: today; for a new account the beginning)')
    .option('--json', 'print JSON')
    .action(account);
  bank
    .command('accounts')
    .description('list your bank accounts')
    .option('--json', 'print JSON')
    .action(accounts);
  addMapping(bank);
  addLists(bank);
  bank
    .command('import <file>')
    .description('import a statement, as a whole or not at all')
    .requiredOption('--account <name>', 'the bank account')
    .requiredOption('--format <format>', 'camt053 or csv')
    .option('--mapping <name>', 'csv: how its columns are read')
    .option('--dry-run', 'only show what would be imported')
    .option('--json', 'print JSON')
    .action(importFile);
  bank
    .command('match')
    .description('match entries that fit exactly, and suggest others; or match by hand')
    .option('--accept', 'match the suggestions too')
    .option('--entry <id>', 'by hand: an entry of the bank; may be repeated', repeat)
    .option('--movement <transactionId>', 'by hand: a movement of the books; may be repeated', repeat)
    .option('--json', 'print JSON')
    .action(match);
  bank
    .command('unmatch <entry>')
    .description('undo the match of an entry')
    .option('--json', 'print JSON')
    .action(undo);
}

function addMapping(bank: Command): void {
  bank
    .command('mapping <name>')
    .description("save how the columns of a bank's CSV are read")
    .requiredOption('--date <column>', 'the day on which the bank booked')
    .requiredOption('--amount <column>', 'the amount, negative for payments')
    .requiredOption('--text <column>', 'a text that contains references; may be repeated', repeat)
    .option('--entry-reference <column>', "the bank's reference for the entry")
    .option('--currency <column>', 'the currency, which must be that of the account')
    .option('--account-number <column>', 'the IBAN, which must be that of the account')
    .option('--date-format <format>', 'YYYY-MM-DD, DD.MM.YYYY, DD/MM/YYYY or MM/DD/YYYY', 'YYYY-MM-DD')
    .option('--decimal <sign>', 'point or comma', 'point')
    .option('--delimiter <sign>', 'comma, semicolon or tab', 'comma')
    .option('--encoding <encoding>', 'utf-8 or windows-1252', 'utf-8')
    .option('--json', 'print JSON')
    .action(mapping);
  bank
    .command('mappings')
    .description('list the saved mappings')
    .option('--json', 'print JSON')
    .action(mappings);
}

type AccountOptions = Json & { currency: string; iban?: string; own?: string; from?: string };

async function account(text: string, { iban, own, from, ...options }: AccountOptions): Promise<void> {
  const ownValue = (amount: string) => (/^0+(\.0+)?$/.test(amount) ? 0 : parseValue(amount, '--own'));
  const input = {
    name: parseText(text, 'the name', NAME_MAX),
    currency: parseCurrencyCode(options.currency),
    ...(iban !== undefined && { iban }),
    ...(own !== undefined && { own: ownValue(own) }),
    ...(from !== undefined && { from: parseDay(from, '--from') }),
  };
  await performCommand(operations.account, input, options, () => say('done'));
}

async function accounts(options: Json): Promise<void> {
  await listCommand(operations.accounts, {}, undefined, options, (found: BankAccount[]) =>
    printTable(
      ['name', 'number', 'currency', 'own money', 'from'],
      found.map(({ name, iban, currency, own, from }) => {
        return [name, iban ?? '', currency, amountText(own, currency), from ?? ''];
      }),
    ),
  );
}

type MappingOptions = Json & {
  date: string;
  amount: string;
  text: string[];
  entryReference?: string;
  currency?: string;
  accountNumber?: string;
  dateFormat: string;
  decimal: string;
  delimiter: string;
  encoding: string;
};

async function mapping(text: string, options: MappingOptions): Promise<void> {
  const column = (value: string, option: string) => parseText(value, option, COLUMN_MAX);
  const formats = ['YYYY-MM-DD', 'DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY'] as const;
  const delimiters = { comma: ',', semicolon: ';', tab: '\t' } as const;
  const decimals = { point: '.', comma: ',' } as const;
  const maybe = (value: string | undefined, option: string) =>
    value === undefined ? null : column(value, option);
  const input = {
    name: parseText(text, 'the name', NAME_MAX),
    date: column(options.date, '--date'),
    dateFormat: oneOf(options.dateFormat, '--date-format', formats),
    amount: column(options.amount, '--amount'),
    decimal: decimals[oneOf(options.decimal, '--decimal', ['point', 'comma'] as const)],
    texts: options.text.map((each) => column(each, '--text')),
    entryReference: maybe(options.entryReference, '--entry-reference'),
    currency: maybe(options.currency, '--currency'),
    accountNumber: maybe(options.accountNumber, '--account-number'),
    delimiter: delimiters[oneOf(options.delimiter, '--delimiter', ['comma', 'semicolon', 'tab'] as const)],
    encoding: oneOf(options.encoding, '--encoding', ['utf-8', 'windows-1252'] as const),
  };
  await performCommand(operations.mapping, input, options, () => say('done'));
}

async function mappings(options: Json): Promise<void> {
  await listCommand(operations.mappings, {}, undefined, options, (found: BankMapping[]) =>
    printTable(
      ['name', 'date', 'amount', 'texts'],
      found.map(({ name, date, amount, texts }) => [name, date, amount, texts.join(', ')]),
    ),
  );
}

type ImportOptions = Json & { account: string; format: string; mapping?: string; dryRun?: boolean };

async function importFile(file: string, options: ImportOptions): Promise<void> {
  const format = oneOf(options.format, '--format', ['camt053', 'csv'] as const);
  if ((format === 'csv') !== (options.mapping !== undefined))
    wrongUsage('--mapping belongs to --format csv, which needs it');
  const bytes = await readFile(file).catch(() => fail(`${file} cannot be read`));
  if (bytes.length > FILE_MAX_BYTES) fail(`${file} is larger than 64 MB: split it`);
  if (bytes.length === 0) fail(`${file} is empty`);
  const input = {
    account: parseText(options.account, '--account', NAME_MAX),
    format,
    ...(options.mapping !== undefined && { mapping: parseText(options.mapping, '--mapping', NAME_MAX) }),
    file: bytes.toString('base64'),
    dryRun: options.dryRun ?? false,
  };
  await performCommand(operations.import, input, options, printReport, {
    end({ ok }) {
      if (!ok) process.exitCode = 1;
    },
  });
}

function printReport({ state, currency, entries: rows, errors, notes }: ImportReport): void {
  for (const { line, field, message } of notes) say(`line ${line}, ${field}: ${message}`);
  if (state === 'refused') {
    printTable(
      ['line', 'field', 'what is wrong'],
      errors.slice(0, SHOWN_MAX).map(({ line, field, message }) => [String(line), field, message]),
    );
    say(`nothing was imported: ${numberOf(errors.length, 'error')}`);
    return;
  }
  printTable(
    ['date', 'amount', 'text'],
    rows
      .slice(0, SHOWN_MAX)
      .map(({ day, amount, description }) => [day, amountText(amount, currency), description]),
    ['text'],
  );
  say(
    `${numberOf(rows.length, 'entry')} ${state === 'checked' ? 'can be imported; nothing was written' : 'imported'}`,
  );
}

type Payout = Static<typeof bankMatching.match.output>['payouts'][number];

/** Returns the command that books a payout. Of the reference, what a shell would interpret is left out. */
function payoutText({ entry, settlement, number, merchant, bankReference, bookedOn }: Payout): string {
  const reference = bankReference.replace(/[^\p{L}\p{N} .:/_-]/gu, '');
  return (
    `entry ${entry} pays settlement ${number} of ${merchant}, which is not booked:\n` +
    `  scrip settlement pay ${settlement} --reference payout-${number} --bank-reference '${reference}' ` +
    `--value-date ${bookedOn}`
  );
}

type MatchOptions = Json & { accept?: boolean; entry?: string[]; movement?: string[] };

async function match(options: MatchOptions): Promise<void> {
  const { entry, movement, accept = false } = options;
  if ((entry === undefined) !== (movement === undefined))
    wrongUsage('--entry and --movement belong together');
  if (entry && movement) {
    const input = {
      entries: entry.map((each) => String(parseId(each, 'entry'))),
      movements: movement.map(parseTransactionId),
    };
    return performCommand(bankMatching.matchByHand, input, options, () => say('matched'));
  }
  await performCommand(bankMatching.match, { accept }, options, ({ exact, suggested, payouts }) => {
    say(`${exact.length} matched exactly`);
    for (const each of payouts) say(payoutText(each));
    if (suggested.length === 0) return;
    printTable(
      ['entry', 'date', 'text', 'movement', 'date'],
      suggested.map((each) => [
        each.entry,
        each.bookedOn,
        each.description,
        `${each.kind} ${each.reference ?? each.movement}`,
        each.occurredOn,
      ]),
      ['text', 'movement'],
    );
    say(accept ? 'the suggestions were matched' : '`scrip bank match --accept` matches the suggestions');
  });
}

async function undo(text: string, options: Json): Promise<void> {
  const input = { id: String(parseId(text, 'entry')) };
  await performCommand(bankMatching.unmatch, input, options, () => say('done'));
}
