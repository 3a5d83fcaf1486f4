import type { Command } from 'commander';
import type { Operator } from '../context.ts';
import { maskCode } from '../ledger/transaction-data.ts';
import { toNumber, toText } from '../money.ts';
import {
  blockVoucher,
  extendVoucher,
  replaceVoucher,
  showVoucher,
  unblockVoucher,
  unlockPin,
  type VoucherInfo,
} from '../vouchers/operate.ts';
import { withOperator, withService } from './open.ts';
import { fail, printFields, printJson, printTable, quoted } from './output.ts';
import { parseExpiry } from './parse.ts';

type Json = { json?: boolean };

export function registerVoucher(program: Command): void {
  const voucher = program.command('voucher').description('single vouchers, by serial number');
  voucher.command('show <serial>').description('a voucher and its history').option('--json', 'print JSON').action(show);
  const changes = [
    ['block', 'refuse to spend or activate it (43)', blockVoucher],
    ['unblock', 'end a block', unblockVoucher],
    ['unlock-pin', 'forget wrong PINs, and end the lock they led to', unlockPin],
  ] as const;
  for (const [name, description, run] of changes) {
    voucher
      .command(`${name} <serial>`)
      .description(description)
      .option('--json', 'print JSON')
      .action((serial: string, options: Json) => change(serial, options, run));
  }
  voucher
    .command('extend <serial>')
    .description('let it live longer, also when it has expired')
    .requiredOption('--expiry <date>', 'a day, of which it is valid to the end (UTC), or a date and time')
    .option('--json', 'print JSON')
    .action((serial: string, options: Json & { expiry: string }) => {
      const expiresAt = parseExpiry(options.expiry);
      return change(serial, options, (operator, number) => extendVoucher(operator, number, expiresAt));
    });
  voucher
    .command('replace <serial>')
    .description(
      'close it for good and put a new one in its place; the merchant gets the new code by downloading the batch',
    )
    .option('--json', 'print JSON')
    .action(replace);
}

async function show(serial: string, options: Json): Promise<void> {
  const serialNumber = parseSerial(serial);
  await withService(async (service) => {
    const voucher = await showVoucher(service, serialNumber);
    if (options.json) return printJson(toJson(voucher));
    const { entries, ...rest } = toJson(voucher);
    printFields({ ...rest, balance: toText(voucher.balance), value: voucher.value && toText(voucher.value) });
    if (entries.length === 0) return;
    printTable(
      ['transaction id', 'kind', 'amount', 'time', 'merchant', 'reference'],
      voucher.entries.map((each) => [
        each.transactionId,
        each.kind,
        toText(each.amount),
        each.timestamp.toISOString(),
        each.merchantId === null ? '' : String(each.merchantId),
        each.reference ?? '',
      ]),
    );
  });
}

type Change = (operator: Operator, serialNumber: bigint) => Promise<void>;

async function change(serial: string, options: Json, run: Change): Promise<void> {
  const serialNumber = parseSerial(serial);
  await withOperator(async (operator) => {
    await run(operator, serialNumber);
    const voucher = await showVoucher(operator.service, serialNumber);
    if (options.json) return printJson(toJson(voucher));
    process.stdout.write(`voucher ${serial} is ${voucher.state}\n`);
  });
}

async function replace(serial: string, options: Json): Promise<void> {
  const serialNumber = parseSerial(serial);
  await withOperator(async (operator) => {
    const replacement = await showVoucher(operator.service, await replaceVoucher(operator, serialNumber));
    if (options.json) return printJson(toJson(replacement));
    process.stdout.write(`voucher ${serial} is replaced by ${replacement.serialNumber}, of the same batch\n`);
  });
}

function toJson(voucher: VoucherInfo) {
  const { code, value, balance, entries, pinLocked, ...rest } = voucher;
  return {
    ...rest,
    voucherCode: maskCode(code),
    merchantId: String(voucher.merchantId),
    balance: toNumber(balance),
    value: value && toNumber(value),
    pinLocked: pinLocked instanceof Date ? `until ${pinLocked.toISOString()}` : pinLocked,
    entries: entries.map((entry) => ({
      ...entry,
      amount: toNumber(entry.amount),
      merchantId: entry.merchantId === null ? null : String(entry.merchantId),
    })),
  };
}

function parseSerial(text: string): bigint {
  if (!/^\d{1,15}$/.test(text)) fail(`${quoted(text)} is no serial number: it has at most 15 digits`);
  return BigInt(text);
}
