import type { Command } from 'commander';
import { type Decline, type Transaction, transactions } from '../operator/transactions.ts';
import { amountText } from './merchant.ts';
import { printFields, printTable, say, wrongUsage } from './output.ts';
import {
  checkDate,
  parseCount,
  parseId,
  parseSerial,
  parseText,
  parseTransactionId,
  parseValue,
} from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';
import { actor } from './usage.ts';

const LISTED = '50';
const REFERENCE_MAX = 100;

type Json = { json?: boolean };

export function registerTransaction(program: Command): void {
  const transaction = program.command('transaction').description('transactions of all merchants');
  transaction
    .command('show [id]')
    .description('show a transaction, or those of a reference')
    .option('--reference <reference>', "a merchant's reference")
    .option('--merchant <id>', 'the merchant of the reference')
    .option('--json', 'print JSON')
    .action(show);
  transaction
    .command('list')
    .description('list transactions, newest first')
    .option('--merchant <id>', 'only activations, redemptions and reversals of this merchant')
    .option('--serial <serial>', 'only those of this voucher')
    .option('--from <date>', 'only those since this day, or date and time')
    .option('--to <date>', 'only those until this day, or date and time')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
}

export function registerRedemption(program: Command): void {
  program
    .command('redemption')
    .description('redemptions')
    .command('correct <id>')
    .description('correct a redemption once, by its transaction id; needs --reason')
    .requiredOption('--amount <amount>', 'the right amount, in major units; 0 for a full reversal')
    .option('--json', 'print JSON')
    .action(correct);
}

export function registerDecline(program: Command): void {
  const decline = program.command('decline').description('requests of merchants that were declined');
  decline
    .command('count')
    .description('count declined requests by their code, of the last 30 days; kept 90 days')
    .option('--from <date>', 'from this day on, in UTC')
    .option('--to <date>', 'until the end of this day')
    .option('--json', 'print JSON')
    .action(countDeclines);
  decline
    .command('list')
    .description('list declined requests that named a voucher, newest first; kept 90 days')
    .option('--merchant <id>', 'only those of this merchant')
    .option('--serial <serial>', 'only those of this voucher')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(listDeclines);
}

async function show(
  argument: string | undefined,
  options: Json & { reference?: string; merchant?: string },
): Promise<void> {
  const { reference, merchant } = options;
  if ((argument === undefined) === (reference === undefined))
    wrongUsage('which transaction? Give its id, or --reference and --merchant');
  if ((reference === undefined) !== (merchant === undefined))
    wrongUsage('--reference and --merchant belong together');
  if (argument !== undefined) {
    const input = { transactionId: parseTransactionId(argument) };
    return performCommand(transactions.show, input, options, printOne);
  }
  const input = {
    reference: parseText(reference ?? '', '--reference', REFERENCE_MAX),
    merchantId: String(parseId(merchant ?? '')),
  };
  await performCommand(transactions.find, input, options, printOne);
}

function printOne(transaction: Transaction): void {
  printFields({ ...transaction, amount: amountText(transaction.amount, transaction.currency) });
}

type ListOptions = Json & { merchant?: string; serial?: string; from?: string; to?: string; limit: string };

async function list(options: ListOptions): Promise<void> {
  const { merchant, serial, from, to } = options;
  if (from !== undefined) checkDate(from, '--from');
  if (to !== undefined) checkDate(to, '--to');
  const filters = { ...ofVoucher({ merchant, serial }), ...(from && { from }), ...(to && { to }) };
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(transactions.list, filters, limit, options, (found: Transaction[]) =>
    printTable(
      ['transaction id', 'kind', 'amount', 'currency', 'time', 'merchant', 'voucher', 'reference'],
      found.map((each) => [
        each.transactionId,
        each.kind,
        amountText(each.amount, each.currency),
        each.currency,
        each.timestamp.toISOString().slice(0, 19).replace('T', ' '),
        each.merchantId ?? '',
        each.serialNumber ?? '',
        each.reference ?? '',
      ]),
      ['reference'],
    ),
  );
}

function ofVoucher({ merchant, serial }: { merchant: string | undefined; serial: string | undefined }) {
  return {
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
    ...(serial !== undefined && { serialNumber: String(parseSerial(serial)) }),
  };
}

async function correct(id: string, options: Json & { amount: string }): Promise<void> {
  const { reason } = actor();
  if (reason === null) wrongUsage('a correction needs --reason');
  const input = {
    transactionId: parseTransactionId(id),
    amount: parseValue(options.amount, '--amount'),
    reason,
  };
  await performCommand(transactions.correct, input, options, ({ replacement }) =>
    say(
      replacement
        ? `corrected: ${replacement.transactionId} has taken its place`
        : 'corrected: the redemption is reversed in full',
    ),
  );
}

async function countDeclines(options: Json & { from?: string; to?: string }): Promise<void> {
  const { from, to } = options;
  if (from !== undefined) checkDate(from, '--from');
  if (to !== undefined) checkDate(to, '--to');
  const input = { ...(from && { from }), ...(to && { to }) };
  await performCommand(transactions.declineCount, input, options, ({ items }) =>
    printTable(
      ['code', 'declines'],
      items.map(({ code, declines }) => [code, String(declines)]),
    ),
  );
}

async function listDeclines(
  options: Json & { merchant?: string; serial?: string; limit: string },
): Promise<void> {
  const { merchant, serial } = options;
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(
    transactions.declines,
    ofVoucher({ merchant, serial }),
    limit,
    options,
    (found: Decline[]) =>
      printTable(
        ['time', 'merchant', 'voucher', 'operation', 'code', 'amount', 'currency', 'reference'],
        found.map((each) => [
          each.at.toISOString().slice(0, 19).replace('T', ' '),
          each.merchantId,
          each.serialNumber ?? 'unknown',
          each.operation,
          each.code,
          each.amount === null ? '' : String(each.amount),
          each.amount === null ? '' : (each.currency ?? 'unknown'),
          each.reference ?? '',
        ]),
        ['reference'],
      ),
  );
}
