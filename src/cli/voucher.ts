import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { foundVouchers, type VoucherSummary } from '../operator/find-vouchers.ts';
import { moneyOperations } from '../operator/money.ts';
import { VOUCHER_STATES, type Voucher, vouchers } from '../operator/vouchers.ts';
import { amountText, printFields, printTable, say, wrongUsage } from './output.ts';
import {
  checkDate,
  oneOf,
  parseCount,
  parseId,
  parseSerial,
  parseText,
  parseTransactionId,
  parseValue,
} from './parse.ts';
import {
  asMoneyCommand,
  LISTED_MAX,
  listCommand,
  type MoneyOptions,
  parseReference,
  performCommand,
  sayBooked,
} from './perform.ts';
import { actor } from './usage.ts';
import { addBulk, addVoucherExport } from './voucher-bulk.ts';

const LISTED = '50';
const REFERENCE_MAX = 100;

type Json = { json?: boolean };

export function registerVoucher(program: Command): void {
  const voucher = program.command('voucher').description('single vouchers, by serial number');
  voucher
    .command('show <serial>')
    .description('show a voucher and its history')
    .option('--json', 'print JSON')
    .action(show);
  voucher
    .command('find')
    .description('find vouchers by code, masked code, reference, transaction or batch')
    .option(
      '--code-stdin',
      'read a full code of 12 digits from standard input, so that no shell history keeps it',
    )
    .option('--masked <code>', 'a masked code, such as 4829****7641')
    .option('--reference <reference>', "a merchant's reference, with --merchant")
    .option('--merchant <id>', 'the merchant of the reference')
    .option('--transaction <id>', 'a transaction id')
    .option('--batch <id>', 'the transaction id of a batch')
    .option('--state <state>', `only vouchers that are ${VOUCHER_STATES.join(', ')}`)
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(find);
  voucher
    .command('list')
    .description('list vouchers in the order of their serial numbers')
    .option('--batch <id>', 'only those of this batch, by its transaction id')
    .option('--state <state>', `only vouchers that are ${VOUCHER_STATES.join(', ')}`)
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
  addBulk(voucher);
  const changes = [
    ['block', 'refuse to redeem or activate it (43)', vouchers.block],
    ['unblock', 'end a block', vouchers.unblock],
    ['cancel', 'close it for good; its money goes back to the float that paid for it', vouchers.cancel],
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
    .description('extend its validity, even if it has expired')
    .requiredOption('--expiry <date>', 'its last day, or a date and time')
    .option('--json', 'print JSON')
    .action((serial: string, options: Json & { expiry: string }) => {
      checkDate(options.expiry, '--expiry');
      const input = { serialNumber: String(parseSerial(serial)), expiry: options.expiry };
      return performCommand(vouchers.extend, input, options, ({ state }) =>
        say(`voucher ${serial} is ${state}`),
      );
    });
  addVoucherMoney(voucher);
  voucher
    .command('replace <serial>')
    .description('close it for good and replace it by a new one, which `voucher export` writes to a file')
    .option('--json', 'print JSON')
    .action(replace);
  addVoucherExport(voucher);
}

type FindOptions = Json & {
  codeStdin?: boolean;
  masked?: string;
  reference?: string;
  merchant?: string;
  transaction?: string;
  batch?: string;
  state?: string;
  limit: string;
};

async function find(options: FindOptions): Promise<void> {
  const { codeStdin, masked, reference, merchant, transaction, batch, state } = options;
  const given = [codeStdin, masked, reference, transaction, batch].filter((each) => each !== undefined);
  if (given.length !== 1)
    wrongUsage('give one of --code-stdin, --masked, --reference, --transaction and --batch');
  if ((reference === undefined) !== (merchant === undefined))
    wrongUsage('--reference and --merchant belong together');
  if (masked !== undefined && !/^\d{4}\*{4}\d{4}$/.test(masked))
    wrongUsage('--masked takes four digits, four asterisks and four digits');
  const filters = {
    ...(codeStdin && { code: readCode() }),
    ...(masked !== undefined && { masked }),
    ...(reference !== undefined && { reference: parseText(reference, '--reference', REFERENCE_MAX) }),
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
    ...(transaction !== undefined && { transactionId: parseTransactionId(transaction) }),
    ...ofBatch({ batch, state }),
  };
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(foundVouchers.find, filters, limit, options, printVouchers);
}

/** Reads a code from standard input. With its PIN it is refused, and no part of it is repeated. */
function readCode(): string {
  const code = readFileSync(0, 'utf8').trim();
  if (/^\d{16}$/.test(code))
    wrongUsage('standard input contains a code with its PIN: give the 12 digits of the code alone');
  if (!/^\d{12}$/.test(code)) wrongUsage('standard input must contain a code of 12 digits');
  return code;
}

function ofBatch({ batch, state }: { batch: string | undefined; state: string | undefined }) {
  return {
    ...(batch !== undefined && { batch: parseTransactionId(batch) }),
    ...(state !== undefined && { state: oneOf(state.toUpperCase(), '--state', VOUCHER_STATES) }),
  };
}

async function list(options: Json & { batch?: string; state?: string; limit: string }): Promise<void> {
  const { batch, state } = options;
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(foundVouchers.list, ofBatch({ batch, state }), limit, options, printVouchers);
}

function printVouchers(found: VoucherSummary[]): void {
  printTable(
    ['serial number', 'code', 'state', 'balance', 'currency', 'expires', 'merchant', 'batch'],
    found.map((each) => [
      each.serialNumber,
      each.voucherCode,
      each.state,
      amountText(each.balance, each.currency),
      each.currency,
      each.expiresAt.toISOString(),
      each.merchantId,
      each.batch,
    ]),
  );
}

async function show(serial: string, options: Json): Promise<void> {
  await performCommand(vouchers.show, { serialNumber: String(parseSerial(serial)) }, options, printVoucher);
}

function printVoucher({ timeline, pinLockedUntil, ...voucher }: Voucher): void {
  const { currency, balance, value, reserved, pinLocked } = voucher;
  const text = (amount: number | null) => (amount === null ? null : amountText(amount, currency));
  printFields({
    ...voucher,
    balance: text(balance),
    value: text(value),
    reserved: reserved && `${text(reserved)}, which it carries once it is activated`,
    pinLocked: pinLocked ? `until ${pinLockedUntil?.toISOString() ?? 'it is unlocked'}` : 'no',
  });
  if (timeline.length === 0) return;
  printTable(
    ['time', 'what', 'amount', 'by', 'reference', 'transaction'],
    timeline.map((each) => [
      each.at.toISOString().slice(0, 19).replace('T', ' '),
      each.kind === 'decline' ? `declined ${each.what} (${each.code})` : each.what,
      each.amount === null ? '' : amountText(each.amount, currency),
      each.actor ?? (each.merchantId === null ? '' : `merchant ${each.merchantId}`),
      each.reference ?? '',
      each.transactionId ?? '',
    ]),
    ['reference', 'by'],
  );
}

async function replace(serial: string, options: Json): Promise<void> {
  await performCommand(vouchers.replace, { serialNumber: String(parseSerial(serial)) }, options, (voucher) =>
    say(`voucher ${serial} is replaced by ${voucher.serialNumber}, of the same batch`),
  );
}

/** Adds the money commands for a single voucher. */
function addVoucherMoney(voucher: Command): void {
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
      .option('--amount <amount>', 'in major units (default: the whole balance)')
      .option('--merchant <id>', 'the merchant that paid the cash (default: the operator did)'),
  ).action(payCash);
  asMoneyCommand(
    voucher.command('escheat <serial>').description('book its balance as paid to a state'),
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
  await performCommand(moneyOperations.adjust, input, options, sayBalance);
}

type CashOptions = MoneyOptions & { amount?: string; merchant?: string };

async function payCash(serial: string, options: CashOptions): Promise<void> {
  const { amount, merchant } = options;
  const input = {
    ...inputOf(serial, options),
    ...(amount !== undefined && { amount: parseValue(amount, '--amount') }),
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
  };
  await performCommand(moneyOperations.cashOut, input, options, sayBalance);
}

async function escheat(serial: string, options: MoneyOptions): Promise<void> {
  await performCommand(moneyOperations.escheat, inputOf(serial, options), options, sayBalance);
}

const inputOf = (serial: string, { reference }: MoneyOptions) => ({
  serialNumber: String(parseSerial(serial)),
  reference: parseReference(reference),
});

type OnVoucher = { readonly balance: number; readonly currency: string; readonly replayed: boolean };

const sayBalance = ({ balance, currency, replayed }: OnVoucher) =>
  sayBooked(replayed, `the voucher holds ${amountText(balance, currency)} ${currency}`);
