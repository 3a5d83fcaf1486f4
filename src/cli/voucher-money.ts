import type { Command } from 'commander';
import type { Booked } from '../books/book-once.ts';
import { adjustVoucher, cashOut, escheatVoucher, voucherBalance } from '../books/vouchers.ts';
import type { Operator } from '../context.ts';
import { toNumber, toText } from '../money.ts';
import { asMoneyCommand, type MoneyOptions, parseReference, printBooked, requireMerchant } from './money.ts';
import { withOperator } from './open.ts';
import { id } from './output.ts';
import { parseAmount, parseId, parseSerial } from './parse.ts';
import { requireApproval } from './perform.ts';

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

type AdjustOptions = MoneyOptions & { amount: string };

async function adjust(serial: string, options: AdjustOptions): Promise<void> {
  const serialNumber = parseSerial(serial);
  const reference = parseReference(options.reference);
  const isDown = options.amount.startsWith('-');
  await withOperator(async (operator) => {
    const { currency } = await voucherBalance(operator, serialNumber);
    const amountMinor = parseAmount(options.amount.replace(/^[+-]/, ''), '--amount', currency);
    await requireApproval(operator, 'voucher.adjust', { amount: options.amount });
    const deltaMinor = isDown ? -amountMinor : amountMinor;
    const booked = await adjustVoucher(operator, { serialNumber, deltaMinor, reference });
    await print(operator, serialNumber, booked, options);
  });
}

type CashOptions = MoneyOptions & { amount?: string; merchant?: string };

async function payCash(serial: string, options: CashOptions): Promise<void> {
  const serialNumber = parseSerial(serial);
  const reference = parseReference(options.reference);
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withOperator(async (operator) => {
    if (merchantId !== null) await requireMerchant(operator.service.db, merchantId);
    const balance = await voucherBalance(operator, serialNumber);
    const { currency } = balance;
    await requireApproval(operator, 'voucher.cash-out', { amount: options.amount ?? toNumber(balance) });
    const amountMinor =
      options.amount === undefined ? null : parseAmount(options.amount, '--amount', currency);
    const booked = await cashOut(operator, { serialNumber, amountMinor, merchantId, reference });
    await print(operator, serialNumber, booked, options);
  });
}

async function escheat(serial: string, options: MoneyOptions): Promise<void> {
  const serialNumber = parseSerial(serial);
  const reference = parseReference(options.reference);
  await withOperator(async (operator) => {
    const booked = await escheatVoucher(operator, { serialNumber, reference });
    await print(operator, serialNumber, booked, options);
  });
}

async function print(
  operator: Operator,
  serialNumber: bigint,
  booked: Booked,
  options: MoneyOptions,
): Promise<void> {
  const { currency, ...balance } = await voucherBalance(operator, serialNumber);
  const details = { serialNumber: id(serialNumber), currency, balance: toNumber(balance) };
  printBooked(booked, details, `the voucher holds ${toText(balance)} ${currency}`, options);
}
