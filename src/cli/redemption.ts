import type { Command } from 'commander';
import { correctRedemption, getRedemption } from '../books/redemptions.ts';
import { toNumber, toText } from '../money.ts';
import { printBooked } from './money.ts';
import { withOperator } from './open.ts';
import { id } from './output.ts';
import { parseAmount, parseTransactionId } from './parse.ts';

type Options = { json?: boolean; amount: string };

export function registerRedemption(program: Command): void {
  const redemption = program.command('redemption').description('redemptions, by transaction id');
  redemption
    .command('correct <transaction-id>')
    .description("correct its amount in the merchant's place, once, with a reason (--reason)")
    .requiredOption('--amount <amount>', 'the right amount, in major units; 0 reverses it in full')
    .option('--json', 'print JSON')
    .action(correct);
}

async function correct(given: string, options: Options): Promise<void> {
  const transactionId = parseTransactionId(given);
  await withOperator(async (operator) => {
    const redemption = await getRedemption(operator, transactionId);
    const { currency, decimals } = redemption;
    const amountMinor = /^0(\.0+)?$/.test(options.amount)
      ? 0n
      : parseAmount(options.amount, '--amount', currency);
    const booked = await correctRedemption(operator, redemption, amountMinor);
    const amount = { minor: amountMinor, decimals };
    const details = {
      redemption: redemption.id,
      serialNumber: id(redemption.serial_number),
      merchantId: id(redemption.merchant_id),
      currency,
      amount: toNumber(amount),
    };
    printBooked(booked, details, `the redemption is now of ${toText(amount)} ${currency}`, options);
  });
}
