import type { Command } from 'commander';
import { correctTopUp, getTopUp, refundFloat } from '../books/floats.ts';
import { toNumber, toText } from '../money.ts';
import {
  asMoneyCommand,
  currencyOf,
  type MoneyOptions,
  parseReference,
  printBooked,
  requireMerchant,
} from './money.ts';
import { withOperator } from './open.ts';
import { id } from './output.ts';
import { parseAmount, parseCurrency, parseId, parseTransactionId } from './parse.ts';
import { requireApproval } from './perform.ts';

/** Adds the commands that take money off a float. */
export function addFloatMoney(float: Command): void {
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
}

type RefundOptions = MoneyOptions & { merchant: string; amount: string; currency?: string };

async function refund(options: RefundOptions): Promise<void> {
  const merchantId = parseId(options.merchant);
  const reference = parseReference(options.reference);
  await withOperator(async (operator) => {
    const { db } = operator.service;
    await requireApproval(operator, 'float.refund');
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
    await requireApproval(operator, 'float.correct');
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
