import type { Command } from 'commander';
import { correctTopUp, getTopUp, refundFloat } from '../books/floats.ts';
import { forecastFloats } from '../books/forecast.ts';
import { setLow, topUp } from '../merchants/floats.ts';
import { toNumber, toText } from '../money.ts';
import { requireMerchant } from './merchant.ts';
import { asMoneyCommand, currencyOf, type MoneyOptions, parseReference, printBooked } from './money.ts';
import { withOperator, withService } from './open.ts';
import { fail, id, printJson, printTable, say } from './output.ts';
import { parseAmount, parseCurrency, parseId, parseTransactionId } from './parse.ts';

type Json = { json?: boolean };

export function registerFloat(program: Command): void {
  const float = program.command('float').description('floats, the prefunded balances of merchants');
  float
    .command('top-up')
    .description('put money on a float')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--amount <amount>', 'the amount, in major units')
    .option('--currency <code>', 'the currency (default: that of the product DEFAULT)')
    .option('--reference <reference>', 'your reference, under which a repetition tops up once')
    .option('--json', 'print JSON')
    .action(add);
  asMoneyCommand(
    float
      .command('refund')
      .description('book unused prepayment that was paid back to a merchant')
      .requiredOption('--merchant <id>', 'the merchant')
      .requiredOption('--amount <amount>', 'the amount, in major units')
      .option('--currency <code>', 'the currency (default: that of the product DEFAULT)'),
  ).action(refund);
  asMoneyCommand(
    float
      .command('correct <transaction-id>')
      .description('take back a top-up that was wrong, or a part of it: once for each top-up')
      .option('--amount <amount>', 'the amount, in major units (default: all of it)'),
  ).action(correct);
  float
    .command('warn')
    .description(
      'set the threshold of a low float, which its merchant is told by webhook when the float crosses it',
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
    .command('show')
    .description("show a merchant's floats")
    .requiredOption('--merchant <id>', 'the merchant')
    .option('--json', 'print JSON')
    .action(show);
}

type TopUpOptions = Json & { merchant: string; amount: string; currency?: string; reference?: string };

async function add(options: TopUpOptions): Promise<void> {
  const merchantId = parseId(options.merchant);
  const { reference } = options;
  if (reference !== undefined) parseReference(reference);
  await withOperator(async (operator) => {
    const { db } = operator.service;
    await requireMerchant(db, merchantId);
    const currency = await currencyOf(db, options.currency);
    const amountMinor = parseAmount(options.amount, '--amount', currency);
    const { float, transactionId, replayed } = await topUp(operator, {
      merchantId,
      currency,
      amountMinor,
      reference,
    });
    const { balance } = float;
    if (options.json)
      return printJson({
        merchantId: id(merchantId),
        currency,
        balance: toNumber(balance),
        transactionId,
        replayed,
      });
    const done = replayed ? 'this top-up was booked before; ' : '';
    say(`${done}the float is now ${toText(balance)} ${currency}`);
  });
}

type RefundOptions = MoneyOptions & { merchant: string; amount: string; currency?: string };

async function refund(options: RefundOptions): Promise<void> {
  const merchantId = parseId(options.merchant);
  const reference = parseReference(options.reference);
  await withOperator(async (operator) => {
    const { db } = operator.service;
    await requireMerchant(db, merchantId);
    const currency = await currencyOf(db, options.currency);
    const decimals = parseCurrency(currency);
    const amountMinor = parseAmount(options.amount, '--amount', currency);
    const wanted = { merchantId, currency, amountMinor, decimals, reference };
    const booked = await refundFloat(operator, wanted);
    const amount = { minor: amountMinor, decimals };
    const details = { merchantId: id(merchantId), currency, amount: toNumber(amount) };
    printBooked(booked, details, `${toText(amount)} ${currency} left the float`, options);
  });
}

async function correct(topUpId: string, options: MoneyOptions & { amount?: string }): Promise<void> {
  const transactionId = parseTransactionId(topUpId);
  const reference = parseReference(options.reference);
  await withOperator(async (operator) => {
    const topUp = await getTopUp(operator, transactionId);
    const { currency, decimals } = topUp;
    const amountMinor =
      options.amount === undefined ? topUp.amount_minor : parseAmount(options.amount, '--amount', currency);
    const booked = await correctTopUp(operator, { topUp, amountMinor, reference });
    const amount = { minor: amountMinor, decimals };
    const details = {
      topUp: topUp.id,
      merchantId: id(topUp.merchant_id),
      currency,
      amount: toNumber(amount),
    };
    printBooked(booked, details, `${toText(amount)} ${currency} of the top-up were taken back`, options);
  });
}

async function warn(options: Json & { merchant: string; below: string; currency?: string }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withOperator(async (operator) => {
    await requireMerchant(operator.service.db, merchantId);
    const currency = await currencyOf(operator.service.db, options.currency);
    const decimals = parseCurrency(currency);
    const lowMinor = options.below === 'default' ? null : parseAmount(options.below, '--below', currency);
    if (!(await setLow(operator, merchantId, currency, lowMinor)))
      fail(`merchant ${merchantId} has no float in ${currency}: top it up first`);
    const below = lowMinor === null ? null : { minor: lowMinor, decimals };
    if (options.json)
      return printJson({ merchantId: id(merchantId), currency, below: below && toNumber(below) });
    say(
      below
        ? `low below ${toText(below)} ${currency}`
        : 'low below a tenth of the float after its last top-up',
    );
  });
}

async function show(options: Json & { merchant: string }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async (service) => {
    await requireMerchant(service.db, merchantId);
    const floats = await forecastFloats(service, merchantId);
    if (options.json)
      return printJson(
        floats.map(({ currency, balance, usePerDay, daysLeft }) => {
          return { currency, balance: toNumber(balance), usePerDay: toNumber(usePerDay), daysLeft };
        }),
      );
    printTable(
      ['currency', 'balance', 'use per day', 'days left'],
      floats.map(({ currency, balance, usePerDay, daysLeft }) => {
        return [currency, toText(balance), toText(usePerDay), daysLeft === null ? '-' : String(daysLeft)];
      }),
    );
  });
}
