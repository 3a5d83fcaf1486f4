import type { Command } from 'commander';
import { closeDays } from '../books/close.ts';
import { getBooks, type ListedDay, listDays, setBooks } from '../books/days.ts';
import { escheatUnclaimed, INCOME, transferOwn } from '../books/own.ts';
import { verifyBooks } from '../books/verify.ts';
import { toNumber, toText } from '../money.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { addBooksExport } from './books-export.ts';
import { addBooksReport } from './books-report.ts';
import { addBooksRules } from './books-rules.ts';
import { asMoneyCommand, currencyOf, type MoneyOptions, parseReference, printBooked } from './money.ts';
import { withOperator, withService } from './open.ts';
import { numberOf, printFields, printJson, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseAmount, parseCount, parseCurrency, parseDay } from './parse.ts';

const GRACE_MIN = 5;
const GRACE_MAX = 60;

type Json = { json?: boolean };

export function registerBooks(program: Command): void {
  const books = program
    .command('books')
    .description('the books: days that never change, and what they report');
  books
    .command('days')
    .description('list the days: open, ended and not yet closed, or closed with their hash')
    .option('--from <day>', 'the first day')
    .option('--to <day>', 'the day behind the last one')
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
    .description('compute closed days again; exit status 1 if a row or a closing is not as it was')
    .option('--from <day>', 'the first day')
    .option('--to <day>', 'the day behind the last one')
    .option('--json', 'print JSON')
    .action(verify);
  books
    .command('set')
    .description('set the zone of the days that have not begun, and how long after its end a day is closed')
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
        'book income that was taken out (fees, breakage), tax that was paid (vat), or money for goodwill',
      )
      .requiredOption('--amount <amount>', 'the amount, in major units')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(transfer);
  asMoneyCommand(
    books
      .command('escheat')
      .description('book unclaimed money that was paid to a state')
      .requiredOption('--amount <amount>', 'the amount, in major units')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(escheat);
}

type Interval = Json & { from?: string; to?: string };

/** @throws CommandError for days that are none, or in the wrong order */
export function parseInterval({ from, to }: { from?: string; to?: string }) {
  const interval = { from: from && parseDay(from, '--from'), to: to && parseDay(to, '--to') };
  if (interval.from && interval.to && interval.to <= interval.from)
    wrongUsage('--to is the day behind the last one: it comes after --from');
  return interval;
}

async function days(options: Interval): Promise<void> {
  const interval = parseInterval(options);
  await withService(async (service) => {
    const listed = await listDays(service, interval);
    if (options.json) return printJson(listed);
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
    );
  });
}

const minuteOf = (time: ListedDay['startsAt']) => `${time.toISOString().slice(0, 16).replace('T', ' ')}Z`;

async function close(options: Json & { day?: string }): Promise<void> {
  const until = options.day && parseDay(options.day, '--day');
  await withOperator(async (operator) => {
    const { closed, waiting } = await closeDays(operator, { until: until || undefined, dayEnds: DAY_ENDS });
    if (until && waiting && waiting.day <= until) process.exitCode = 1;
    if (closed.some(({ failed }) => failed.length > 0)) process.exitCode = 1;
    if (options.json) return printJson({ closed, waiting });
    for (const { day, hash, failed } of closed)
      say(`${day} is closed: ${hash}${failed.length > 0 ? `; it does not agree: ${failed.join(', ')}` : ''}`);
    if (waiting) say(`not closed: ${waiting.reason}`);
    else if (closed.length === 0) say('nothing to close');
  });
}

async function verify(options: Interval): Promise<void> {
  const interval = parseInterval(options);
  await withService(async (service) => {
    const result = await verifyBooks(service, interval);
    if (!result.ok) process.exitCode = 1;
    if (options.json) return printJson(result);
    for (const { day, change, transactionId, slice, detail } of result.breaks)
      say([day, change, transactionId, slice && `slice ${slice}`, detail].filter(Boolean).join(' · '));
    const read = `${numberOf(result.days, 'day')} with ${numberOf(result.rows, 'row')}`;
    say(result.ok ? `${read}: everything is as it was closed.` : `${read}: the books are broken.`);
  });
}

async function set(options: Json & { zone?: string; grace?: string }): Promise<void> {
  const graceMinutes =
    options.grace === undefined ? undefined : parseCount(options.grace, '--grace', GRACE_MIN, GRACE_MAX);
  const show = ({ zone, grace_minutes }: { zone: string; grace_minutes: number }) => {
    if (options.json) printJson({ zone, graceMinutes: grace_minutes });
    else printFields({ zone, graceMinutes: grace_minutes });
  };
  if (options.zone === undefined && graceMinutes === undefined)
    return withService(async ({ db }) => show(await getBooks(db)));
  await withOperator(async (operator) =>
    show(await setBooks(operator, { zone: options.zone, graceMinutes })),
  );
}

type AmountOptions = MoneyOptions & { amount: string; currency?: string };

async function transfer(account: string, options: AmountOptions): Promise<void> {
  const chosen = oneOf(account, 'the account', [...INCOME, 'goodwill'] as const);
  const reference = parseReference(options.reference);
  await withOperator(async (operator) => {
    const currency = await currencyOf(operator.service.db, options.currency);
    const decimals = parseCurrency(currency);
    const amountMinor = parseAmount(options.amount, '--amount', currency);
    const wanted = { account: chosen, currency, decimals, amountMinor, reference };
    const booked = await transferOwn(operator, wanted);
    const amount = { minor: amountMinor, decimals };
    const details = { account: chosen, currency, amount: toNumber(amount) };
    printBooked(booked, details, `${toText(amount)} ${currency} are booked`, options);
  });
}

async function escheat(options: AmountOptions): Promise<void> {
  const reference = parseReference(options.reference);
  await withOperator(async (operator) => {
    const currency = await currencyOf(operator.service.db, options.currency);
    const decimals = parseCurrency(currency);
    const amountMinor = parseAmount(options.amount, '--amount', currency);
    const booked = await escheatUnclaimed(operator, { currency, decimals, amountMinor, reference });
    const amount = { minor: amountMinor, decimals };
    printBooked(
      booked,
      { currency, amount: toNumber(amount) },
      `${toText(amount)} ${currency} are booked`,
      options,
    );
  });
}
