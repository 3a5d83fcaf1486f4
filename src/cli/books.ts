import type { Command } from 'commander';
import { closing } from '../books/close.ts';
import { escheat } from '../books/escheat.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { addReport } from './books-report.ts';
import { amountText, printTable, say, wrongUsage } from './output.ts';
import { parseCurrencyCode, parseDay, parseValue } from './parse.ts';
import { asMoneyCommand, type MoneyOptions, parseReference, performCommand, sayBooked } from './perform.ts';
import { readSerials } from './voucher-bulk.ts';

/** Adds the commands of the books that read a file, stream, or have an exit status of their own. */
export function addBooks(books: Command): void {
  books
    .command('close')
    .description('close the days that are due, in order, and say why the next one is not')
    .option('--day <day>', 'the last day to close')
    .option('--json', 'print JSON')
    .action(close);
  asMoneyCommand(
    books
      .command('escheat')
      .description('book the unclaimed money of expired vouchers as paid to a state')
      .option('--serials <file>', 'the vouchers: a file with a serial number in each line, or - for stdin')
      .option('--expired-before <day>', 'or all whose money expired before this day')
      .option('--amount <amount>', 'what was paid, in major units: another sum is refused')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(payToState);
  addReport(books);
}

/** The exit status is 1 if the day is not closed, or if a check of a closed day failed. */
async function close(options: { json?: boolean; day?: string }): Promise<void> {
  const day = options.day === undefined ? undefined : parseDay(options.day, '--day');
  await performCommand(
    closing(DAY_ENDS),
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

type EscheatOptions = MoneyOptions & {
  serials?: string;
  expiredBefore?: string;
  amount?: string;
  currency?: string;
};

async function payToState(options: EscheatOptions): Promise<void> {
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
  await performCommand(escheat, input, options, (booked) => {
    printTable(
      ['serial', 'amount', 'expired'],
      booked.vouchers.map(({ serialNumber, amount: paid, expiredAt }) => [
        serialNumber,
        amountText(paid, booked.currency),
        `${expiredAt.toISOString().slice(0, 16).replace('T', ' ')}Z`,
      ]),
    );
    sayBooked(booked.replayed, `${amountText(booked.amount, booked.currency)} ${booked.currency} are booked`);
  });
}
