import type { Static } from 'typebox';
import { toNumber } from '../../money.ts';
import type { VoucherBalance } from '../../vouchers/balance.ts';
import type { BalanceData } from './schemas.ts';

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
      timestamp,
      reference,
    })),
  };
}
