import type { Command } from 'commander';
import { findProgress } from '../batches/list.ts';
import type { Operator, Service } from '../context.ts';
import { maskCode } from '../ledger/transaction-data.ts';
import { type Money, toNumber, toText } from '../money.ts';
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
import { id, printFields, printJson, printTable, say } from './output.ts';
import { parseEnd, parseSerial } from './parse.ts';
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
    ['block', 'refuse to redeem or activate it (43)', blockVoucher],
    ['unblock', 'end a block', unblockVoucher],
    ['unlock-pin', 'forget wrong PINs, and end the lock that they caused', unlockPin],
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
    .description('extend its validity, also when it has expired')
    .requiredOption('--expiry <date>', 'its last day (UTC), or a date and time')
    .option('--json', 'print JSON')
    .action((serial: string, options: Json & { expiry: string }) => {
      const expiresAt = parseEnd(options.expiry, '--expiry');
      return change(serial, options, (operator, number) => extendVoucher(operator, number, expiresAt));
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

/** A voucher with the value that waits for its activation. */
type Shown = { readonly voucher: VoucherInfo; readonly reserved: Money | null };

async function find(service: Service, serialNumber: bigint): Promise<Shown> {
  const voucher = await showVoucher(service, serialNumber);
  const isWaiting =
    voucher.activatedAt === null && voucher.state !== 'CANCELED' && voucher.state !== 'REPLACED';
  const batch = isWaiting ? (await findProgress(service.db, voucher.batch))?.batch : undefined;
  return { voucher, reserved: batch?.value ?? null };
}

async function show(serial: string, options: Json): Promise<void> {
  const serialNumber = parseSerial(serial);
  await withService(async (service) => {
    const found = await find(service, serialNumber);
    if (options.json) return printJson(toJson(found));
    const { entries: _entries, pinLockedUntil, ...rest } = toJson(found);
    const { voucher, reserved } = found;
    printFields({
      ...rest,
      balance: toText(voucher.balance),
      value: voucher.value && toText(voucher.value),
      reserved: reserved && `${toText(reserved)}, which it carries once it is activated`,
      pinLocked: rest.pinLocked ? `until ${pinLockedUntil ?? 'it is unlocked'}` : 'no',
    });
    if (voucher.entries.length > 0) printHistory(voucher);
  });
}

function printHistory(voucher: VoucherInfo): void {
  printTable(
    ['transaction id', 'kind', 'amount', 'time', 'merchant', 'reference'],
    voucher.entries.map((each) => [
      each.transactionId,
      each.kind,
      toText(signed(each)),
      each.timestamp.toISOString().slice(0, 19).replace('T', ' '),
      id(each.merchantId) ?? '',
      each.reference ?? '',
    ]),
    ['reference'],
  );
}

type Entry = VoucherInfo['entries'][number];

/** A reversal's amount is negative, as in the interface. */
function signed({ kind, amount }: Entry): Money {
  return kind === 'REDEMPTION_REVERSAL' ? { ...amount, minor: -amount.minor } : amount;
}

type Change = (operator: Operator, serialNumber: bigint) => Promise<void>;

async function change(serial: string, options: Json, run: Change): Promise<void> {
  const serialNumber = parseSerial(serial);
  await withOperator(async (operator) => {
    await run(operator, serialNumber);
    const found = await find(operator.service, serialNumber);
    if (options.json) return printJson(toJson(found));
    say(`voucher ${serial} is ${found.voucher.state}`);
  });
}

async function replace(serial: string, options: Json): Promise<void> {
  const serialNumber = parseSerial(serial);
  await withOperator(async (operator) => {
    const found = await find(operator.service, await replaceVoucher(operator, serialNumber));
    if (options.json) return printJson(toJson(found));
    say(`voucher ${serial} is replaced by ${found.voucher.serialNumber}, of the same batch`);
  });
}

function toJson({ voucher, reserved }: Shown) {
  const { code, value, balance, entries, pinLocked, ...rest } = voucher;
  return {
    ...rest,
    serialNumber: id(voucher.serialNumber),
    replacedBy: id(voucher.replacedBy),
    voucherCode: maskCode(code),
    merchantId: id(voucher.merchantId),
    balance: toNumber(balance),
    value: value && toNumber(value),
    reserved: reserved && toNumber(reserved),
    pinLocked: pinLocked !== 'no',
    /** Null where no time ends the lock. */
    pinLockedUntil: pinLocked instanceof Date ? pinLocked.toISOString() : null,
    entries: entries.map((entry) => ({
      ...entry,
      amount: toNumber(signed(entry)),
      merchantId: id(entry.merchantId),
      reference: entry.reference === '' ? null : entry.reference,
    })),
  };
}
