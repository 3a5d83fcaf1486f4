import type { Command } from 'commander';
import { type Voucher, vouchers } from '../operator/vouchers.ts';
import { amountText } from './merchant.ts';
import { printFields, printTable, say } from './output.ts';
import { parseEnd, parseSerial } from './parse.ts';
import { performCommand } from './perform.ts';
import { registerVoucherMoney } from './voucher-money.ts';

type Json = { json?: boolean };

export function registerVoucher(program: Command): void {
  const voucher = program.command('voucher').description('single vouchers, by serial number');
  voucher
    .command('show <serial>')
    .description('show a voucher and its history')
    .option('--json', 'print JSON')
    .action(show);
  const changes = [
    ['block', 'refuse to redeem or activate it (43)', vouchers.block],
    ['unblock', 'end a block', vouchers.unblock],
    ['unlock-pin', 'forget wrong PINs, and end the lock that they caused', vouchers.unlockPin],
  ] as const;
  for (const [name, description, run] of changes) {
    voucher
      .command(`${name} <serial>`)
      .description(description)
      .option('--json', 'print JSON')
      .action((serial: string, options: Json) =>
        performCommand(run, { serialNumber: String(parseSerial(serial)) }, options, ({ state }) =>
          say(`voucher ${serial} is ${state}`),
        ),
      );
  }
  voucher
    .command('extend <serial>')
    .description('extend its validity, also when it has expired')
    .requiredOption('--expiry <date>', 'its last day (UTC), or a date and time')
    .option('--json', 'print JSON')
    .action((serial: string, options: Json & { expiry: string }) => {
      parseEnd(options.expiry, '--expiry');
      const input = { serialNumber: String(parseSerial(serial)), expiry: options.expiry };
      return performCommand(vouchers.extend, input, options, ({ state }) =>
        say(`voucher ${serial} is ${state}`),
      );
    });
  registerVoucherMoney(voucher);
  voucher
    .command('replace <serial>')
    .description(
      'close it for good and put a new one in its place, whose code is in the download of the batch',
    )
    .option('--json', 'print JSON')
    .action(replace);
}

async function show(serial: string, options: Json): Promise<void> {
  await performCommand(vouchers.show, { serialNumber: String(parseSerial(serial)) }, options, printVoucher);
}

function printVoucher({ entries, pinLockedUntil, ...voucher }: Voucher): void {
  const { currency, balance, value, reserved, pinLocked } = voucher;
  const text = (amount: number | null) => (amount === null ? null : amountText(amount, currency));
  printFields({
    ...voucher,
    balance: text(balance),
    value: text(value),
    reserved: reserved && `${text(reserved)}, which it carries once it is activated`,
    pinLocked: pinLocked ? `until ${pinLockedUntil?.toISOString() ?? 'it is unlocked'}` : 'no',
  });
  if (entries.length === 0) return;
  printTable(
    ['transaction id', 'kind', 'amount', 'time', 'merchant', 'reference'],
    entries.map((each) => [
      each.transactionId,
      each.kind,
      amountText(each.amount, currency),
      each.timestamp.toISOString().slice(0, 19).replace('T', ' '),
      each.merchantId ?? '',
      each.reference ?? '',
    ]),
    ['reference'],
  );
}

async function replace(serial: string, options: Json): Promise<void> {
  await performCommand(vouchers.replace, { serialNumber: String(parseSerial(serial)) }, options, (voucher) =>
    say(`voucher ${serial} is replaced by ${voucher.serialNumber}, of the same batch`),
  );
}
