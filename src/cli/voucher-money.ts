import type { Command } from 'commander';
import { moneyOperations } from '../operator/money.ts';
import { actor } from './actor.ts';
import { amountText } from './merchant.ts';
import { asMoneyCommand, type MoneyOptions, parseReference, sayBooked } from './money.ts';
import { wrongUsage } from './output.ts';
import { parseId, parseSerial, parseValue } from './parse.ts';
import { performCommand } from './perform.ts';

/** Money commands about a single voucher. */
export function addVoucherMoney(voucher: Command): void {
  asMoneyCommand(
    voucher
      .command('adjust <serial>')
      .description('correct its balance by a signed amount, with a reason (--reason)')
      .requiredOption('--amount <amount>', 'in major units, such as 5 or -2.50'),
  ).action(adjust);
  asMoneyCommand(
    voucher
      .command('cash-out <serial>')
      .description('book a remainder that was paid out in cash')
      .option('--amount <amount>', 'in major units (default: all that is left)')
      .option('--merchant <id>', 'the merchant that paid the cash (default: the operator did)'),
  ).action(payCash);
  asMoneyCommand(
    voucher.command('escheat <serial>').description('book what it holds as paid to a state'),
  ).action(escheat);
}

async function adjust(serial: string, options: MoneyOptions & { amount: string }): Promise<void> {
  const { reason } = actor();
  if (reason === null) wrongUsage('an adjustment needs --reason');
  const amount = parseValue(options.amount.replace(/^[+-]/, ''), '--amount');
  const input = {
    ...inputOf(serial, options),
    amount: options.amount.startsWith('-') ? -amount : amount,
    reason,
  };
  await performCommand(moneyOperations.adjust, input, options, print);
}

type CashOptions = MoneyOptions & { amount?: string; merchant?: string };

async function payCash(serial: string, options: CashOptions): Promise<void> {
  const { amount, merchant } = options;
  const input = {
    ...inputOf(serial, options),
    ...(amount !== undefined && { amount: parseValue(amount, '--amount') }),
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
  };
  await performCommand(moneyOperations.cashOut, input, options, print);
}

async function escheat(serial: string, options: MoneyOptions): Promise<void> {
  await performCommand(moneyOperations.escheat, inputOf(serial, options), options, print);
}

const inputOf = (serial: string, { reference }: MoneyOptions) => ({
  serialNumber: String(parseSerial(serial)),
  reference: parseReference(reference),
});

type OnVoucher = { readonly balance: number; readonly currency: string; readonly replayed: boolean };

const print = ({ balance, currency, replayed }: OnVoucher) =>
  sayBooked(replayed, `the voucher holds ${amountText(balance, currency)} ${currency}`);
