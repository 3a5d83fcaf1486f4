import type { Command } from 'commander';
import { EXPORT_FORMATS } from '../books/export.ts';
import { INCOME, OPENED } from '../books/own.ts';
import { books as operations } from '../operator/books.ts';
import { booksFiles } from '../operator/books-files.ts';
import { addBooksReport } from './books-report.ts';
import { addBooksRules } from './books-rules.ts';
import { amountText, numberOf, printFields, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseCurrencyCode, parseDay, parseId, parseValue } from './parse.ts';
import {
  asMoneyCommand,
  listCommand,
  type MoneyOptions,
  parseReference,
  performCommand,
  performFile,
  sayBooked,
} from './perform.ts';
import { readSerials } from './voucher-bulk.ts';

const GRACE_MIN = 5;
const GRACE_MAX = 60;
const DAYS_MAX = 100_000;

type Json = { json?: boolean };

export function registerBooks(program: Command): void {
  const books = program.command('books').description('the books: closed days that never change, and reports');
  books
    .command('days')
    .description('list the days: open, ended and not yet closed, or closed with their hash')
    .option('--from <day>', 'the first day')
    .option('--to <day>', 'the day after the last one')
    .option('--json', 'print JSON')
    .action(days);
  books
    .command('close')
    .description('close the days that are due, in order, and say why the next one is not')
    .option('--day <day>', 'the last day to close')
    .option('--json', 'print JSON')
    .action(close);
  books
    .command('verify')
    .description('compute closed days again; exit status 1 if a row or a closing was changed')
    .option(
      '--from <day>',
      'the first day; by default where an interrupted run stopped, else the first of all',
    )
    .option('--to <day>', 'the day after the last one')
    .option('--last-days <number>', 'only this number of the last closed days')
    .option('--json', 'print JSON')
    .action(verify);
  books
    .command('set')
    .description(
      'set the time zone of days that have not begun, and the time between the end of a day and its close',
    )
    .option('--zone <zone>', 'of the IANA database, such as Europe/Rome (at first: UTC)')
    .option('--grace <minutes>', `from ${GRACE_MIN} to ${GRACE_MAX} (at first: 15)`)
    .option('--json', 'print JSON')
    .action(set);
  registerOwn(books);
  addBooksReport(books);
  addBooksExport(books);
  addBooksRules(books);
}

function registerOwn(books: Command): void {
  asMoneyCommand(
    books
      .command('transfer <account>')
      .description(
        'book income that you took out (fees, breakage), tax that you paid (vat), or money for goodwill',
      )
      .requiredOption('--amount <amount>', 'the amount, in major units')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(transfer);
  asMoneyCommand(
    books
      .command('opening <account>')
      .description('take over a balance that another system leaves behind: settlement, fees, breakage or vat')
      .requiredOption('--amount <amount>', 'the amount, in major units')
      .option('--merchant <id>', 'the merchant of the settlement account')
      .option('--debit', 'subtract the amount: the merchant owes it, or too much was opened')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(opening);
  asMoneyCommand(
    books
      .command('escheat')
      .description('book the unclaimed money of expired vouchers as paid to a state')
      .option('--serials <file>', 'the vouchers: a file with a serial number in each line, or - for stdin')
      .option('--expired-before <day>', 'or all whose money expired before this day')
      .option('--amount <amount>', 'what was paid, in major units: another sum is refused')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(escheat);
}

type Interval = Json & { from?: string; to?: string };

/** Parses an interval of days. @throws CommandError for invalid days, or a wrong order */
function parseInterval({ from, to }: { from?: string; to?: string }) {
  const interval = {
    ...(from !== undefined && { from: parseDay(from, '--from') }),
    ...(to !== undefined && { to: parseDay(to, '--to') }),
  };
  if (from && to && to <= from)
    wrongUsage('--to must be later than --from: it is the day after the last one');
  return interval;
}

type Day = Awaited<ReturnType<typeof operations.days.run>>['items'][number];

async function days(options: Interval): Promise<void> {
  await listCommand(operations.days, parseInterval(options), undefined, options, (listed: Day[]) =>
    printTable(
      ['day', 'starts', 'ends', 'zone', 'state', 'rows', 'hash'],
      listed.map((each) => [
        each.day,
        minuteOf(each.startsAt),
        minuteOf(each.endsAt),
        each.zone,
        each.state,
        each.rows === null ? '' : String(each.rows),
        each.hash?.slice(0, 12) ?? '',
      ]),
    ),
  );
}

const minuteOf = (time: Date) => `${time.toISOString().slice(0, 16).replace('T', ' ')}Z`;

async function close(options: Json & { day?: string }): Promise<void> {
  const day = options.day === undefined ? undefined : parseDay(options.day, '--day');
  await performCommand(
    operations.close,
    day === undefined ? {} : { day },
    options,
    ({ closed, waiting }) => {
      for (const each of closed) {
        const failed = each.failed.length > 0 ? `; it does not agree: ${each.failed.join(', ')}` : '';
        say(`${each.day} is closed: ${each.hash}${failed}`);
      }
      if (waiting) say(`not closed: ${waiting.reason}`);
      else if (closed.length === 0) say('nothing to close');
    },
    {
      end({ closed, waiting }) {
        if (day && waiting && waiting.day <= day) process.exitCode = 1;
        if (closed.some(({ failed }) => failed.length > 0)) process.exitCode = 1;
      },
    },
  );
}

/** A difference found by `verify`. */
type Break = { day: string; change: string; transactionId?: string; slice?: string; detail?: string };

async function verify({ lastDays, ...options }: Interval & { lastDays?: string }): Promise<void> {
  await performCommand(
    operations.verify,
    {
      ...parseInterval(options),
      ...(lastDays !== undefined && { lastDays: parseCount(lastDays, '--last-days', 1, DAYS_MAX) }),
    },
    options,
    (result) => {
      for (const { day, change, transactionId, slice, detail } of result.breaks as Break[])
        say([day, change, transactionId, slice && `slice ${slice}`, detail].filter(Boolean).join(' · '));
      const read = `${numberOf(result.days, 'day')} with ${numberOf(result.rows, 'row')}`;
      say(result.ok ? `${read}: everything is as it was closed.` : `${read}: the books are broken.`);
    },
    {
      end({ ok }) {
        if (!ok) process.exitCode = 1;
      },
    },
  );
}

async function set(options: Json & { zone?: string; grace?: string }): Promise<void> {
  const { zone, grace } = options;
  if (zone === undefined && grace === undefined)
    return performCommand(operations.show, {}, options, (settings) => printFields(settings));
  const input = {
    ...(zone !== undefined && { zone }),
    ...(grace !== undefined && { graceMinutes: parseCount(grace, '--grace', GRACE_MIN, GRACE_MAX) }),
  };
  await performCommand(operations.set, input, options, (settings) => printFields(settings));
}

type AmountOptions = MoneyOptions & { amount: string; currency?: string };

const amountOf = ({ amount, currency, reference }: AmountOptions) => ({
  amount: parseValue(amount, '--amount'),
  ...(currency !== undefined && { currency: parseCurrencyCode(currency) }),
  reference: parseReference(reference),
});

type Booked = { readonly amount: number; readonly currency: string; readonly replayed: boolean };

const printBooked = ({ amount, currency, replayed }: Booked) =>
  sayBooked(replayed, `${amountText(amount, currency)} ${currency} are booked`);

async function transfer(text: string, options: AmountOptions): Promise<void> {
  const account = oneOf(text, 'the account', [...INCOME, 'goodwill'] as const);
  await performCommand(operations.transfer, { account, ...amountOf(options) }, options, printBooked);
}

type OpeningOptions = AmountOptions & { merchant?: string; debit?: boolean };

async function opening(text: string, options: OpeningOptions): Promise<void> {
  const account = oneOf(text, 'the account', OPENED);
  const input = {
    account,
    ...amountOf(options),
    ...(options.merchant !== undefined && { merchantId: String(parseId(options.merchant)) }),
    ...(options.debit && { debit: true }),
  };
  await performCommand(operations.opening, input, options, printBooked);
}

type EscheatOptions = MoneyOptions & {
  serials?: string;
  expiredBefore?: string;
  amount?: string;
  currency?: string;
};

async function escheat(options: EscheatOptions): Promise<void> {
  const { serials, expiredBefore, amount, currency, reference } = options;
  if (serials !== undefined && expiredBefore !== undefined)
    wrongUsage('--serials and --expired-before: choose one');
  if (serials === undefined && expiredBefore === undefined && amount === undefined)
    wrongUsage('name the vouchers (--serials, --expired-before), or the --amount of all that is unclaimed');
  const input = {
    ...(serials !== undefined && { serialNumbers: readSerials(serials) }),
    ...(expiredBefore !== undefined && { expiredBefore: parseDay(expiredBefore, '--expired-before') }),
    ...(amount !== undefined && { amount: parseValue(amount, '--amount') }),
    ...(currency !== undefined && { currency: parseCurrencyCode(currency) }),
    reference: parseReference(reference),
  };
  await performCommand(operations.escheat, input, options, (booked) => {
    printTable(
      ['serial', 'amount', 'expired'],
      booked.vouchers.map(({ serialNumber, amount: paid, expiredAt }) => [
        serialNumber,
        amountText(paid, booked.currency),
        minuteOf(expiredAt),
      ]),
    );
    printBooked(booked);
  });
}

type ExportOptions = {
  json?: boolean;
  format: string;
  from: string;
  to: string;
  merchant?: string;
  rows?: boolean;
  european?: boolean;
  out?: string;
  force?: boolean;
};

/** Adds exports to the commands of the books. */
function addBooksExport(books: Command): void {
  books
    .command('export')
    .description('export closed days for an accounting system')
    .requiredOption('--format <format>', EXPORT_FORMATS.join(', '))
    .requiredOption('--from <day>', 'the first day')
    .requiredOption('--to <day>', 'the day after the last one')
    .option('--merchant <id>', 'camt053: the accounts of one merchant (default: of all)')
    .option('--rows', 'beancount, hledger, gl: each row separately (default: the sums of each day)')
    .option('--european', 'gl, csv: with semicolons and a decimal comma')
    .option('--out <file>', 'the file (default: stdout)')
    .option('--force', 'overwrite the file')
    .option('--json', 'print JSON; the export then goes into a file')
    .action(exportBooks);
}

async function exportBooks(options: ExportOptions): Promise<void> {
  const format = oneOf(options.format, '--format', EXPORT_FORMATS);
  const [from, to] = [parseDay(options.from, '--from'), parseDay(options.to, '--to')];
  if (to <= from) wrongUsage('--to must be later than --from: it is the day after the last one');
  if (options.json && !options.out) wrongUsage('--json needs --out FILE');
  if (options.merchant !== undefined && format !== 'camt053') wrongUsage('--merchant needs --format camt053');
  const input = {
    format,
    from,
    to,
    ...(options.rows && { rows: true }),
    ...(options.european && { european: true }),
    ...(options.merchant !== undefined && { merchantId: String(parseId(options.merchant)) }),
  };
  await performFile(booksFiles.export, input, options);
}
