import { toNumber } from '../money.ts';
import { isoTime } from '../time.ts';
import type { RedemptionUpdate, Transaction } from './transactions.ts';

/**
 * Transactions as JSON: what answers and webhooks show of them (docs/reference/interface.md, "Transaction").
 */

/** Masks a voucher code: its first four digits, four asterisks, its last four. */
export function maskCode(code: string): string {
  return `${code.slice(0, 4)}****${code.slice(-4)}`;
}

/** A transaction with its code masked and its amount as a number in major units. */
export function transactionData(transaction: Transaction) {
  return {
    transactionId: transaction.transactionId,
    transactionType: transaction.type,
    amount: toNumber(transaction.amount),
    timestamp: isoTime(transaction.timestamp.getTime()),
    reference: transaction.reference,
    voucherCode: maskCode(transaction.code),
    serialNumber: String(transaction.serialNumber),
    refundStatus: transaction.refundStatus,
    note: transaction.note,
  };
}

/** An update in both shapes that clients know: the named transactions, and the same in a list. */
export function updateData({ original, cancellation, replacement, reference }: RedemptionUpdate) {
  const originalTransaction = transactionData(original);
  const cancellationTransaction = transactionData(cancellation);
  const newTransaction = replacement && transactionData(replacement);
  return {
    originalTransaction,
    cancellationTransaction,
    newTransaction,
    transactions: [originalTransaction, cancellationTransaction, ...(newTransaction ? [newTransaction] : [])],
    summary: {
      originalAmount: originalTransaction.amount,
      newAmount: newTransaction?.amount ?? 0,
      reference,
    },
  };
}
