import type { Static } from 'typebox';
import { maskCode } from '../../ledger/transaction-data.ts';
import type { Transaction as LedgerTransaction } from '../../ledger/transactions.ts';
import { toNumber } from '../../money.ts';
import { isoTime } from '../../time.ts';
import type { VoucherBalance } from '../../vouchers/balance.ts';
import type { BalanceData, Transaction } from './schemas.ts';

/**
 * Variant B knows activations and redemptions only; the core's list and look-up give it no others.
 * @param voucherCode as it was sent, where the answer repeats it; else it is masked
 */
export function renderTransaction(transaction: LedgerTransaction, voucherCode?: string): Static<typeof Transaction> {
  return {
    transactionId: transaction.transactionId,
    transactionType: transaction.type === 'ACTIVATION' ? 'ACTIVATION' : 'REDEMPTION',
    amount: toNumber(transaction.amount),
    timestamp: isoTime(transaction.timestamp.getTime()),
    reference: transaction.reference,
    voucherCode: voucherCode ?? maskCode(transaction.code),
    serialNumber: String(transaction.serialNumber),
  };
}

/** @param voucherCode as it was sent */
export function renderBalance(found: VoucherBalance, voucherCode: string): Static<typeof BalanceData> {
  return {
    serialNumber: Number(found.serialNumber),
    voucherCode,
    balance: toNumber(found.balance),
    usableAmount: toNumber(found.usable),
    transactions: found.transactions.map(({ transactionId, type, amount, timestamp, reference }) => ({
      transactionId,
      transactionType: type,
      amount: toNumber(amount),
      timestamp,
      reference,
    })),
  };
}
