import { maskCode } from './redact.ts';
import type {
  Balance,
  BatchHead,
  BatchStatus,
  RedemptionUpdate,
  Transaction,
  TransactionType,
  UpdateTransaction,
  Voucher,
} from './types.ts';
import type { WireBalanceA, WireBatch, WireTransactionA, WireUpdateResult, WireVoucher } from './wire.ts';

/** Readers of answers: a field that is missing or of another type makes the answer none of the interface. */

/** Names a field of an answer, never its value. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}

/** An answer that ended too early. */
export class BrokenOff extends Malformed {}

/** An answer's object, of which nothing is known but the names of its fields. */
type Unread<T> = { readonly [Key in keyof T]?: unknown };

function object<T>(value: unknown, what: string): Unread<T> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Malformed(`${what} is no object`);
  return value as Unread<T>;
}

function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Malformed(`${what} is no list`);
  return value;
}

function text(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new Malformed(`${field} is no text`);
  return value;
}

/** A field that an answer may leave out. */
function textOrNull(value: unknown, field: string): string | null {
  return value === undefined || value === null ? null : text(value, field);
}

function number(value: unknown, field: string): number {
  if (typeof value !== 'number') throw new Malformed(`${field} is no number`);
  return value;
}

function numberOrNull(value: unknown, field: string): number | null {
  return value === undefined || value === null ? null : number(value, field);
}

function word<const Word extends string>(value: unknown, words: readonly Word[], field: string): Word {
  const found = words.find((each) => each === value);
  if (found === undefined) throw new Malformed(`${field} is none of ${words.join(', ')}`);
  return found;
}

/** The interface tells serial numbers as numbers or as text, by the place. */
function serialNumber(value: unknown): string {
  const digits = typeof value === 'number' ? String(value) : value;
  if (typeof digits !== 'string' || !/^\d{1,15}$/.test(digits)) throw new Malformed('serialNumber is none');
  return digits;
}

const TYPES: readonly TransactionType[] = ['ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL'];
const STATUSES: readonly BatchStatus[] = ['PROCESSING', 'COMPLETED', 'CANCELED'];

function readUpdateTransaction(value: unknown): UpdateTransaction {
  const found = object<WireTransactionA>(value, 'the transaction');
  const { refundStatus } = found;
  return {
    transactionId: text(found.transactionId, 'transactionId'),
    transactionType: word(found.transactionType, TYPES, 'transactionType'),
    amount: number(found.amount, 'amount'),
    timestamp: textOrNull(found.timestamp, 'timestamp'),
    reference: textOrNull(found.reference, 'reference'),
    voucherCode: maskCode(text(found.voucherCode, 'voucherCode')),
    serialNumber: serialNumber(found.serialNumber),
    refundStatus: refundStatus === 'CANCELLED' || refundStatus === 'NEW' ? refundStatus : null,
    note: textOrNull(found.note, 'note'),
  };
}

export function readTransaction(value: unknown): Transaction {
  const transaction = readUpdateTransaction(value);
  return { ...transaction, timestamp: text(transaction.timestamp, 'timestamp') };
}

export function readTransactions(value: unknown): Transaction[] {
  return list(value, 'data').map(readTransaction);
}

export function readBalance(value: unknown): Balance {
  const found = object<WireBalanceA>(value, 'data');
  return {
    serialNumber: Number(serialNumber(found.serialNumber)),
    voucherCode: maskCode(text(found.voucherCode, 'voucherCode')),
    balance: number(found.balance, 'balance'),
    usableAmount: number(found.usableAmount, 'usableAmount'),
    value: numberOrNull(found.value, 'value'),
    transactions: list(found.transactions, 'transactions').map((each) => {
      const transaction = object<WireTransactionA>(each, 'the transaction');
      return {
        transactionId: text(transaction.transactionId, 'transactionId'),
        transactionType: word(transaction.transactionType, TYPES, 'transactionType'),
        amount: number(transaction.amount, 'amount'),
        timestamp: text(transaction.timestamp, 'timestamp'),
        reference: textOrNull(transaction.reference, 'reference'),
      };
    }),
  };
}

export function readVoucher(value: unknown): Voucher {
  const found = object<WireVoucher>(value, 'the voucher');
  return {
    serialNumber: Number(serialNumber(found.serialNumber)),
    code: text(found.code, 'code'),
    pin: textOrNull(found.pin, 'pin'),
  };
}

export function readBatchHead(value: unknown): BatchHead {
  const found = object<WireBatch>(value, 'data');
  return {
    reference: text(found.reference, 'reference'),
    transactionId: text(found.transactionId, 'transactionId'),
    status: word(found.status, STATUSES, 'status'),
    expiryDate: text(found.expiryDate, 'expiryDate'),
    value: numberOrNull(found.value, 'value'),
  };
}

export function readVouchers(value: unknown): Voucher[] {
  return list(object<WireBatch>(value, 'data').vouchers, 'vouchers').map(readVoucher);
}

/** Reads both shapes of an update: the three transactions by name, or in a list, in the order original, cancellation, new. */
export function readUpdate(value: unknown): RedemptionUpdate {
  const found = object<WireUpdateResult>(value, 'data');
  const [original, cancellation, replacement] =
    found.originalTransaction === undefined
      ? list(found.transactions, 'transactions')
      : [found.originalTransaction, found.cancellationTransaction, found.newTransaction];
  const summary = object<WireUpdateResult['summary']>(found.summary, 'summary');
  const cancellationTransaction = readUpdateTransaction(cancellation);
  if (cancellationTransaction.transactionType !== 'REDEMPTION_REVERSAL') {
    throw new Malformed('the second transaction of the update is no reversal');
  }
  return {
    // What an update did to each of them follows from its place, also where the answer does not repeat it.
    originalTransaction: { ...readUpdateTransaction(original), refundStatus: 'CANCELLED' },
    cancellationTransaction,
    newTransaction:
      replacement === undefined || replacement === null
        ? null
        : { ...readUpdateTransaction(replacement), refundStatus: 'NEW' },
    summary: {
      originalAmount: number(summary.originalAmount, 'originalAmount'),
      newAmount: number(summary.newAmount, 'newAmount'),
      reference: text(summary.reference, 'reference'),
    },
  };
}
