import type {
  Balance,
  BatchHead,
  RedemptionUpdate,
  Transaction,
  Undone,
  UpdateTransaction,
  Voucher,
} from './types.ts';

/** Readers of responses. A field that is missing or of another type makes a response invalid. */

/** Names a field of a response, never its value. */
export class Malformed extends Error {
  override readonly name: string = 'Malformed';
}

/** A response that ended too early. */
export class BrokenOff extends Malformed {}

type Reader<T> = (value: unknown, field: string) => T;

function expect(isSo: boolean, field: string, what: string): void {
  if (!isSo) throw new Malformed(`${field} is not ${what}`);
}

const text: Reader<string> = (value, field) => {
  expect(typeof value === 'string', field, 'a string');
  return value as string;
};

const number: Reader<number> = (value, field) => {
  expect(typeof value === 'number', field, 'a number');
  return value as number;
};

/** The interface has serial numbers as numbers in some places and as strings in others. */
const serialNumber: Reader<string> = (value, field) => {
  const digits = typeof value === 'number' ? String(value) : value;
  expect(typeof digits === 'string' && /^\d{1,15}$/.test(digits), field, 'a serial number');
  return digits as string;
};

/**
 * A voucher code of any spelling, masked: its first four digits, four asterisks, its last four; never the
 * PIN.
 */
const maskedCode: Reader<string> = (value, field) => {
  const code = text(value, field);
  return code.includes('*') ? code : `${code.slice(0, 4)}****${code.slice(8, 12)}`;
};

function oneOf<const Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (value, field) => {
    expect((words as readonly unknown[]).includes(value), field, `one of ${words.join(', ')}`);
    return value as Word;
  };
}

/** A field that a response may leave out. */
function optional<T>(read: Reader<T>): Reader<T | null> {
  return (value, field) => (value === undefined || value === null ? null : read(value, field));
}

function listOf<T>(read: Reader<T>): Reader<T[]> {
  return (value, field) => {
    expect(Array.isArray(value), field, 'a list');
    return (value as unknown[]).map((each) => read(each, field));
  };
}

type Shape<T> = { readonly [Field in keyof T]-?: Reader<T[Field]> };

/** An object with these fields; others are ignored. */
function objectOf<T>(shape: Shape<T>): Reader<T> {
  const fields = Object.entries(shape) as [string, Reader<unknown>][];
  return (value, field) => {
    expect(typeof value === 'object' && value !== null && !Array.isArray(value), field, 'an object');
    const found = value as Readonly<Record<string, unknown>>;
    return Object.fromEntries(fields.map(([name, read]) => [name, read(found[name], name)])) as T;
  };
}

const transactionType = oneOf('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL');
const serialAsNumber: Reader<number> = (value, field) => Number(serialNumber(value, field));

const UPDATE_TRANSACTION: Shape<UpdateTransaction> = {
  transactionId: text,
  transactionType,
  amount: number,
  timestamp: optional(text),
  reference: optional(text),
  voucherCode: maskedCode,
  serialNumber,
  refundStatus: (value) => (value === 'CANCELLED' || value === 'NEW' ? value : null),
  note: optional(text),
};

const updateTransaction = objectOf<UpdateTransaction>(UPDATE_TRANSACTION);
const transaction = objectOf<Transaction>({ ...UPDATE_TRANSACTION, timestamp: text });

const balance = objectOf<Balance>({
  serialNumber: serialAsNumber,
  voucherCode: maskedCode,
  balance: number,
  usableAmount: number,
  value: optional(number),
  transactions: listOf(
    objectOf({
      transactionId: text,
      transactionType,
      amount: number,
      timestamp: text,
      reference: optional(text),
    }),
  ),
});

const voucher = objectOf<Voucher>({ serialNumber: serialAsNumber, code: text, pin: optional(text) });

const batchHead = objectOf<BatchHead>({
  reference: text,
  transactionId: text,
  status: oneOf('PROCESSING', 'COMPLETED', 'CANCELED'),
  expiryDate: text,
  value: optional(number),
});

const summary = objectOf<RedemptionUpdate['summary']>({
  originalAmount: number,
  newAmount: number,
  reference: text,
});

const undone = objectOf<Omit<Undone, 'requestId'>>({
  outcome: oneOf('reversed', 'already-reversed', 'given-up'),
  reference: text,
  transactionId: optional(text),
  reversalId: optional(text),
  amount: optional(number),
  voucherCode: optional(maskedCode),
});

export const readUndone = (data: unknown) => undone(data, 'the answer');
export const readTransaction = (data: unknown) => transaction(data, 'data');
export const readTransactions = (data: unknown) => listOf(transaction)(data, 'data');
export const readBalance = (data: unknown) => balance(data, 'data');
export const readVoucher = (item: unknown) => voucher(item, 'the voucher');
export const readBatchHead = (data: unknown) => batchHead(data, 'data');
export const readVouchers = (data: unknown) => objectOf({ vouchers: listOf(voucher) })(data, 'data').vouchers;

/**
 * Reads both shapes of an update: the transactions by name, or in a list in the order original,
 * cancellation, new.
 */
export function readUpdate(data: unknown): RedemptionUpdate {
  expect(typeof data === 'object' && data !== null, 'data', 'an object');
  const found = data as Readonly<Record<string, unknown>>;
  const { originalTransaction, transactions } = found as {
    originalTransaction?: unknown;
    transactions?: unknown;
  };
  const [original, cancellation, replacement] =
    originalTransaction === undefined && Array.isArray(transactions)
      ? transactions
      : [originalTransaction, found['cancellationTransaction'], found['newTransaction']];
  const cancellationTransaction = updateTransaction(cancellation, 'the cancellation');
  expect(
    cancellationTransaction.transactionType === 'REDEMPTION_REVERSAL',
    'the second transaction',
    'a reversal',
  );
  const newTransaction = optional(updateTransaction)(replacement, 'the new transaction');
  return {
    // The refund status follows from the place, also where the response leaves it out.
    originalTransaction: {
      ...updateTransaction(original, 'the original transaction'),
      refundStatus: 'CANCELLED',
    },
    cancellationTransaction,
    newTransaction: newTransaction && { ...newTransaction, refundStatus: 'NEW' },
    summary: summary(found['summary'], 'summary'),
  };
}
