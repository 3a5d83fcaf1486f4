import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { type BankReport, importBank, saveMapping, setBankAccount } from '../bank/import.ts';
import { matchBank, matchByHand, type Pair, unmatch } from '../bank/match.ts';
import { type AccountRow, listBankAccounts, listMappings } from '../bank/queries.ts';
import type { Mapping } from '../bank/read.ts';
import { toNumber, toText } from '../money.ts';
import { withOperator, withService } from './open.ts';
import { fail, id, numberOf, printJson, printTable, say, wrongUsage } from './output.ts';
import {
  oneOf,
  parseAmount,
  parseCurrency,
  parseId,
  parseText,
  parseTransactionId,
  repeat,
} from './parse.ts';

const NAME_MAX = 100;
const COLUMN_MAX = 200;
/** A statement of a bank is far smaller. */
const FILE_MAX_BYTES = 64 * 1024 * 1024;
const SHOWN_MAX = 50;

type Json = { json?: boolean };

export function registerBank(program: Command): void {
  const bank = program.command('bank').description('statements of your bank, and what they say of the books');
  bank
    .command('account <name>')
    .description('name one of your bank accounts')
    .requiredOption('--currency <code>', 'its currency, which stays')
    .option('--own <amount>', 'your own money in it, of which the books know nothing (default: 0)')
    .option('--json', 'print JSON')
    .action(account);
  bank
    .command('accounts')
    .description('list your bank accounts')
    .option('--json', 'print JSON')
    .action(accounts);
  addMapping(bank);
  bank
    .command('import <file>')
    .description('import a statement: as a whole, or nothing of it')
    .requiredOption('--account <name>', 'the bank account')
    .requiredOption('--format <format>', 'camt053 or csv')
    .option('--mapping <name>', 'csv: how its columns are read')
    .option('--dry-run', 'only show what would be imported')
    .option('--json', 'print JSON')
    .action(importFile);
  bank
    .command('match')
    .description('match what is exact, and suggest the rest; or match by hand one entry with one or several')
    .option('--accept', 'match what is suggested too')
    .option('--entry <id>', 'by hand: an entry of the bank; may be repeated', repeat)
    .option('--movement <transactionId>', 'by hand: a movement of the books; may be repeated', repeat)
    .option('--json', 'print JSON')
    .action(match);
  bank
    .command('unmatch <entry>')
    .description('undo what an entry was matched with')
    .option('--json', 'print JSON')
    .action(undo);
}

function addMapping(bank: Command): void {
  bank
    .command('mapping <name>')
    .description("save how the columns of a bank's CSV are read")
    .requiredOption('--date <column>', 'the day on which the bank booked')
    .requiredOption('--amount <column>', 'the amount, negative for what was paid')
    .requiredOption('--text <column>', 'a text in which references stand; may be repeated', repeat)
    .option('--entry-reference <column>', "the bank's own reference of an entry")
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

async function account(text: string, options: Json & { currency: string; own?: string }): Promise<void> {
  const name = parseText(text, 'the name', NAME_MAX);
  const { currency } = options;
  const decimals = parseCurrency(currency);
  const isNone = options.own === undefined || /^0+(\.0+)?$/.test(options.own);
  const ownMinor = isNone ? 0n : parseAmount(options.own ?? '', '--own', currency);
  await withOperator(async (operator) => {
    await setBankAccount(operator, { name, currency, decimals, ownMinor });
    if (options.json) printJson({ name, currency, own: toNumber({ minor: ownMinor, decimals }) });
    else say('done');
  });
}

async function accounts(options: Json): Promise<void> {
  await withService(async ({ db }) => {
    const rows = (await db.query<AccountRow>(listBankAccounts)).map(
      ({ name, currency, decimals, own_minor: minor }) => {
        return { name, currency, own: { minor, decimals } };
      },
    );
    if (options.json) return printJson(rows.map((row) => ({ ...row, own: toNumber(row.own) })));
    printTable(
      ['name', 'currency', 'own money'],
      rows.map(({ name, currency, own }) => [name, currency, toText(own)]),
    );
  });
}

type MappingOptions = Json & {
  date: string;
  amount: string;
  text: string[];
  entryReference?: string;
  dateFormat: string;
  decimal: string;
  delimiter: string;
  encoding: string;
};

async function mapping(text: string, options: MappingOptions): Promise<void> {
  const name = parseText(text, 'the name', NAME_MAX);
  const column = (value: string, option: string) => parseText(value, option, COLUMN_MAX);
  const formats = ['YYYY-MM-DD', 'DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY'] as const;
  const delimiters = { comma: ',', semicolon: ';', tab: '\t' } as const;
  const made: Mapping = {
    date: column(options.date, '--date'),
    dateFormat: oneOf(options.dateFormat, '--date-format', formats),
    amount: column(options.amount, '--amount'),
    decimal: oneOf(options.decimal, '--decimal', ['point', 'comma'] as const) === 'point' ? '.' : ',',
    texts: options.text.map((each) => column(each, '--text')),
    entryReference:
      options.entryReference === undefined ? null : column(options.entryReference, '--entry-reference'),
    delimiter: delimiters[oneOf(options.delimiter, '--delimiter', ['comma', 'semicolon', 'tab'] as const)],
    encoding: oneOf(options.encoding, '--encoding', ['utf-8', 'windows-1252'] as const),
  };
  await withOperator(async (operator) => {
    await saveMapping(operator, name, made);
    if (options.json) printJson({ name, ...made });
    else say('done');
  });
}

async function mappings(options: Json): Promise<void> {
  await withService(async ({ db }) => {
    const rows = await db.query<{ name: string; mapping: Mapping }>(listMappings);
    if (options.json) return printJson(rows.map(({ name, mapping: each }) => ({ name, ...each })));
    printTable(
      ['name', 'date', 'amount', 'texts'],
      rows.map(({ name, mapping: each }) => [name, each.date, each.amount, each.texts.join(', ')]),
    );
  });
}

type ImportOptions = Json & { account: string; format: string; mapping?: string; dryRun?: boolean };

async function importFile(file: string, options: ImportOptions): Promise<void> {
  const format = oneOf(options.format, '--format', ['camt053', 'csv'] as const);
  if ((format === 'csv') !== (options.mapping !== undefined))
    wrongUsage('--mapping belongs to --format csv, which needs it');
  const bytes = await readFile(file).catch(() => fail(`${file} cannot be read`));
  if (bytes.length > FILE_MAX_BYTES) fail(`${file} is larger than 64 MB: split it`);
  await withOperator(async (operator) => {
    const wanted = { account: options.account, bytes, format, mapping: options.mapping };
    const report = await importBank(operator, wanted, options.dryRun ?? false);
    if (report.state === 'refused') process.exitCode = 1;
    printReport(report, options.json);
  });
}

function printReport(report: BankReport, isJson: boolean | undefined): void {
  const { state, currency, decimals, entries, errors, closing } = report;
  const shown = entries.map(({ line, reference, day, amountMinor, description }) => {
    return { line, reference, day, amount: { minor: amountMinor, decimals }, description };
  });
  if (isJson) {
    const end = closing && { day: closing.day, amount: toNumber({ minor: closing.minor, decimals }) };
    const rows = shown.map((each) => ({ ...each, amount: toNumber(each.amount) }));
    printJson({ ok: state !== 'refused', state, currency, entries: rows, closing: end, errors });
    return;
  }
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
    shown.slice(0, SHOWN_MAX).map(({ day, amount, description }) => [day, toText(amount), description]),
    ['text'],
  );
  say(
    `${numberOf(entries.length, 'entry')} ${state === 'checked' ? 'can be imported; nothing was written' : 'imported'}`,
  );
}

type MatchOptions = Json & { accept?: boolean; entry?: string[]; movement?: string[] };

async function match(options: MatchOptions): Promise<void> {
  const { entry, movement } = options;
  if ((entry === undefined) !== (movement === undefined))
    wrongUsage('--entry and --movement belong together');
  const entryIds = entry?.map((each) => parseId(each, 'entry'));
  const movementIds = movement?.map(parseTransactionId);
  await withOperator(async (operator) => {
    if (entryIds && movementIds) {
      await matchByHand(operator, { entryIds, movementIds });
      if (options.json) printJson({ entries: entryIds.map(id), movements: movementIds });
      else say('matched');
      return;
    }
    const { exact, suggested } = await matchBank(operator, options.accept ?? false);
    if (options.json) return printJson({ exact: exact.map(pairJson), suggested: suggested.map(pairJson) });
    say(`${exact.length} matched exactly`);
    printTable(
      ['entry', 'date', 'text', 'movement', 'date'],
      suggested.map(({ entry: one, movement: other }) => [
        String(one.id),
        one.booked_on,
        one.description,
        `${other.kind} ${other.reference ?? other.id}`,
        other.occurred_on,
      ]),
      ['text', 'movement'],
    );
    say(
      options.accept ? 'the suggestions were matched' : '`scrip bank match --accept` matches the suggestions',
    );
  });
}

function pairJson({ entry, movement }: Pair) {
  return { entry: id(entry.id), movement: movement.id, kind: movement.kind, reference: movement.reference };
}

async function undo(text: string, options: Json): Promise<void> {
  const entryId = parseId(text, 'entry');
  await withOperator(async (operator) => {
    await unmatch(operator, entryId);
    if (options.json) printJson({ entry: id(entryId) });
    else say('done');
  });
}
