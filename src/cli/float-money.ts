import type { Command } from 'commander';
import { moneyOperations } from '../operator/money.ts';
import { amountText } from './merchant.ts';
import { asMoneyCommand, type MoneyOptions, parseReference, sayBooked } from './money.ts';
import { parseCurrencyCode, parseId, parseTransactionId, parseValue } from './parse.ts';
import { performCommand } from './perform.ts';

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
