import type { Command } from 'commander';
import { type Float, floats } from '../operator/floats.ts';
import { moneyOperations } from '../operator/money.ts';
import { amountText } from './merchant.ts';
import { printTable, say } from './output.ts';
import { parseCurrencyCode, parseId, parseText, parseTransactionId, parseValue } from './parse.ts';
import {
  asMoneyCommand,
  LISTED_MAX,
  listCommand,
  type MoneyOptions,
  parseReference,
  performCommand,
  sayBooked,
} from './perform.ts';

const REFERENCE_MAX = 100;

type Json = { json?: boolean };

export function registerFloat(program: Command): void {
  const float = program.command('float').description('floats, the money that merchants have paid in advance');
  float
    .command('top-up')
    .description('put money on a float')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--amount <amount>', 'the amount, in major units')
    .option('--currency <code>', 'the currency (default: that of the product DEFAULT)')
    .option('--reference <reference>', 'your reference, under which a repetition tops up once')
    .option('--json', 'print JSON')
    .action(add);
  addFloatMoney(float);
  float
    .command('warn')
    .description(
      'set the threshold of a low float; the merchant gets a webhook when the float falls below it',
    )
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption(
      '--below <amount>',
      'in major units, or "default": a tenth of the float after its last top-up',
    )
    .option('--currency <code>', 'the currency (default: that of the product DEFAULT)')
    .option('--json', 'print JSON')
    .action(warn);
  float
    .command('low')
    .description('list the floats that are below their threshold, with the days that they will last')
    .option('--json', 'print JSON')
    .action(low);
  float
    .command('show')
    .description('list floats with the days that they will last: of a merchant, or of all')
    .option('--merchant <id>', 'the merchant')
    .option('--json', 'print JSON')
    .action(show);
}

type TopUpOptions = Json & { merchant: string; amount: string; currency?: string; reference?: string };

async function add(options: TopUpOptions): Promise<void> {
  const { reference, currency } = options;
  const input = {
    merchantId: String(parseId(options.merchant)),
    amount: parseValue(options.amount, '--amount'),
    ...(currency !== undefined && { currency: parseCurrencyCode(currency) }),
    ...(reference !== undefined && { reference: parseText(reference, '--reference', REFERENCE_MAX) }),
  };
  await performCommand(floats.topUp, input, options, (done) => {
    const before = done.replayed ? 'this top-up was booked before; ' : '';
    say(`${before}the float is now ${amountText(done.balance, done.currency)} ${done.currency}`);
  });
}

async function warn(options: Json & { merchant: string; below: string; currency?: string }): Promise<void> {
  const { currency } = options;
  const input = {
    merchantId: String(parseId(options.merchant)),
    below: options.below === 'default' ? null : parseValue(options.below, '--below'),
    ...(currency !== undefined && { currency: parseCurrencyCode(currency) }),
  };
  await performCommand(floats.warn, input, options, ({ below, currency: of }) =>
    say(
      below === null
        ? 'low below a tenth of the float after its last top-up'
        : `low below ${amountText(below, of)} ${of}`,
    ),
  );
}

async function show({ merchant, ...options }: Json & { merchant?: string }): Promise<void> {
  const input = merchant === undefined ? {} : { merchantId: String(parseId(merchant)) };
  await listCommand(floats.show, input, LISTED_MAX, options, printFloats);
}

async function low(options: Json): Promise<void> {
  await listCommand(floats.low, {}, LISTED_MAX, options, printFloats);
}

function printFloats(found: readonly Float[]): void {
  printTable(
    ['merchant', 'name', 'currency', 'balance', 'mark', 'use per day', 'days left'],
    found.map(({ merchantId, merchant, currency, balance, usePerDay, daysLeft, low: mark }) => {
      const amounts = [balance, mark, usePerDay].map((amount) =>
        amount === null ? '-' : amountText(amount, currency),
      );
      return [merchantId, merchant, currency, ...amounts, daysLeft === null ? '-' : String(daysLeft)];
    }),
    ['name'],
  );
}

/** Adds the commands that take money from a float. */
function addFloatMoney(float: Command): void {
  asMoneyCommand(
    float
      .command('refund')
      .description('book an unused prepayment that was paid back to a merchant')
      .requiredOption('--merchant <id>', 'the merchant')
      .requiredOption('--amount <amount>', 'the amount, in major units')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(refund);
  asMoneyCommand(
    float
      .command('correct <transaction-id>')
      .description('take back a wrong top-up or a part of it, once for each top-up')
      .option('--amount <amount>', 'the amount, in major units (default: all of it)'),
  ).action(correct);
}

type RefundOptions = MoneyOptions & { merchant: string; amount: string; currency?: string };

async function refund(options: RefundOptions): Promise<void> {
  const input = {
    merchantId: String(parseId(options.merchant)),
    amount: parseValue(options.amount, '--amount'),
    ...(options.currency !== undefined && { currency: parseCurrencyCode(options.currency) }),
    reference: parseReference(options.reference),
  };
  await performCommand(moneyOperations.refund, input, options, ({ amount, currency, replayed }) =>
    sayBooked(replayed, `${amountText(amount, currency)} ${currency} left the float`),
  );
}

async function correct(topUpId: string, options: MoneyOptions & { amount?: string }): Promise<void> {
  const input = {
    transactionId: parseTransactionId(topUpId),
    ...(options.amount !== undefined && { amount: parseValue(options.amount, '--amount') }),
    reference: parseReference(options.reference),
  };
  await performCommand(moneyOperations.correct, input, options, ({ amount, currency, replayed }) =>
    sayBooked(replayed, `${amountText(amount, currency)} ${currency} of the top-up were taken back`),
  );
}
