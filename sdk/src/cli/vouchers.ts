import type { Transaction } from '../types.ts';
import { amountOf, CONNECTION, type Command, type Line, wrongUsage } from './command.ts';
import { newReference, openSession } from './session.ts';
import { askHidden, printFields, printJson, printTable, say, write } from './terminal.ts';

const ABOUT_PIN = `CODE is the 12 digits without the PIN. The PIN is asked for without echo; if standard
input is not a terminal, it is read from there, as a line. Without CODE, the code is read in the same way
before the PIN:
12 digits, or 16 that hold both.`;

export const BALANCE: Command = {
  name: 'balance',
  args: ['[CODE]'],
  summary: 'show the balance of a voucher',
  details: ABOUT_PIN,
  options: { ...CONNECTION },
  run: balance,
};

export const REDEEM: Command = {
  name: 'redeem',
  args: ['[CODE]'],
  summary: 'take an amount from a voucher',
  details: `${ABOUT_PIN}\n\nThe same reference again takes nothing a second time.`,
  options: {
    amount: { value: 'AMOUNT', summary: 'the amount: all of it is taken, or nothing', required: true },
    reference: {
      value: 'REF',
      summary: "your reference, such as the order's number (default: a generated one)",
    },
    ...CONNECTION,
  },
  run: redeem,
};

export const ACTIVATE: Command = {
  name: 'activate',
  args: ['[CODE]'],
  summary: 'activate a voucher: by code and PIN in variant a, by serial number in variant b',
  details: ABOUT_PIN,
  options: {
    serial: { value: 'NUMBER', summary: 'variant b: the serial number, instead of CODE' },
    value: { value: 'AMOUNT', summary: "variant b: the value (default: the batch's, else 5000)" },
    reference: { value: 'REF', summary: 'your reference (default: a generated one)' },
    ...CONNECTION,
  },
  run: activate,
};

/** The voucher of a command line. A code of 16 digits is refused as an argument: it contains the PIN. */
async function voucherOf(line: Line): Promise<{ code: string; pin?: string }> {
  const [argument] = line.args;
  const given = argument?.replace(/[\s-]/g, '');
  if (given !== undefined && /^\d{16}$/.test(given)) {
    wrongUsage(
      'a code of 16 digits contains the PIN, and arguments can be seen by others: give the first 12 digits',
    );
  }
  if (given !== undefined && !/^\d{12}$/.test(given)) wrongUsage('CODE must be 12 digits');
  const code = given ?? (await askHidden('code')).replace(/[\s-]/g, '');
  if (/^\d{16}$/.test(code)) return { code };
  if (!/^\d{12}$/.test(code)) wrongUsage('a code must be 12 digits, or 16 with the PIN');
  const pin = await askHidden('PIN');
  if (!/^\d{4}$/.test(pin)) wrongUsage('a PIN must be 4 digits');
  return { code, pin };
}

async function balance(line: Line): Promise<void> {
  const { scrip, call } = await openSession(line);
  const found = await scrip.balance(await voucherOf(line), call);
  if (line.has('json')) return printJson(found);
  await printFields({
    voucher: found.voucherCode,
    'serial number': String(found.serialNumber),
    balance: found.balance,
    usable: found.usableAmount,
    ...(found.value !== null && { value: found.value }),
  });
  await write('\n');
  await printTable(
    ['time', 'type', 'amount', 'reference'],
    found.transactions.map(({ timestamp, transactionType, amount, reference }) => [
      timestamp,
      transactionType,
      amount,
      reference,
    ]),
  );
}

async function redeem(line: Line): Promise<void> {
  const amount = amountOf(line, 'amount') as number;
  const { scrip, call } = await openSession(line);
  const voucher = await voucherOf(line);
  const reference = newReference(line);
  await printTransaction(line, await scrip.redeem({ ...voucher, amount, reference }, call));
}

async function activate(line: Line): Promise<void> {
  const value = amountOf(line, 'value');
  const serialNumber = line.text('serial');
  const { inA, inB, call } = await openSession(line);
  if (inA) {
    if (serialNumber !== undefined || value !== undefined) {
      wrongUsage(`--${serialNumber === undefined ? 'value' : 'serial'} needs --variant b`);
    }
    const voucher = await voucherOf(line);
    return printTransaction(line, await inA.activate({ ...voucher, reference: newReference(line) }, call));
  }
  if (serialNumber === undefined) wrongUsage('variant b activates by serial number: --serial NUMBER');
  if (line.args.length > 0) wrongUsage('variant b activates by serial number, without CODE');
  const reference = newReference(line);
  const scrip = inB as NonNullable<typeof inB>;
  await printTransaction(line, await scrip.activate({ serialNumber, value, reference }, call));
}

/** A transaction for people or programs. */
export async function printTransaction(
  line: Line,
  transaction: Transaction & { replayed?: boolean },
): Promise<void> {
  if (line.has('json')) return printJson(transaction);
  if (transaction.replayed) say('this had been done before, and was not done again');
  await printFields({
    type: transaction.transactionType,
    amount: transaction.amount,
    voucher: transaction.voucherCode,
    'serial number': transaction.serialNumber,
    reference: transaction.reference,
    'transaction id': transaction.transactionId,
    time: transaction.timestamp,
    ...(transaction.refundStatus !== null && { 'refund status': transaction.refundStatus }),
    ...(transaction.note !== null && { note: transaction.note }),
  });
}
