import type { Static } from 'typebox';
import type { Transaction as LedgerTransaction } from '../../ledger/transactions.ts';
import { toNumber } from '../../money.ts';
import type { RedemptionUpdate } from '../../redemptions/update.ts';
import type { VoucherBalance } from '../../vouchers/balance.ts';
import { maskCode } from '../fields.ts';
import type { BalanceData, Transaction, UpdateData } from './schemas.ts';

export function renderTransaction(transaction: LedgerTransaction): Static<typeof Transaction> {
  return {
    transactionId: transaction.transactionId,
    transactionType: transaction.type,
    amount: toNumber(transaction.amount),
    timestamp: transaction.timestamp.toISOString(),
    reference: transaction.reference,
    voucherCode: maskCode(transaction.code),
    serialNumber: String(transaction.serialNumber),
    refundStatus: transaction.refundStatus,
    note: transaction.note,
  };
}

/** @param voucherCode as it was sent */
export function renderBalance(found: VoucherBalance, voucherCode: string): Static<typeof BalanceData> {
  return {
    serialNumber: Number(found.serialNumber),
    voucherCode,
    balance: toNumber(found.balance),
    usableAmount: toNumber(found.usable),
    value: found.value && toNumber(found.value),
    transactions: found.transactions.map(({ transactionId, type, amount, timestamp, reference }) => ({
      transactionId,
      transactionType: type,
      amount: toNumber(amount),
      timestamp: timestamp.toISOString(),
      reference,
    })),
  };
}

/** Both shapes that clients know: the named transactions, and the same in a list. */
export function renderUpdate({
  original,
  cancellation,
  replacement,
  reference,
}: RedemptionUpdate): Static<typeof UpdateData> {
  const originalTransaction = renderTransaction(original);
  const cancellationTransaction = renderTransaction(cancellation);
  const newTransaction = replacement && renderTransaction(replacement);
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
