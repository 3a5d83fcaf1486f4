import type { Operator } from '../context.ts';
import { newId } from '../ledger/id.ts';
import { getAccount, postVoucher } from '../ledger/journal.ts';
import { toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { change, showVoucher } from './operate.ts';

/**
 * Cancels a voucher for good: what it holds goes back to the float of the merchant that generated it
 * (CANCELLATION). What was redeemed of it stays redeemed.
 * @throws Refusal `14`, `44`, `54`, `40`; `42` where it holds nothing; `13` where the float would hold too
 *   much
 */
export async function cancelVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  const { service } = operator;
  const { merchantId, currency, balance, activatedAt } = await showVoucher(service, serialNumber);
  await change(operator, serialNumber, 'voucher.cancel', async (tx, { bucket, balance_minor: minor }) => {
    if (activatedAt === null)
      throw new Refusal('40', { message: 'Voucher not active: it holds nothing yet; block it instead' });
    if (minor === 0n)
      throw new Refusal('42', { message: 'Voucher already redeemed: it holds nothing; block it instead' });
    const now = service.clock();
    const id = newId(now);
    const account = await getAccount(tx, merchantId, currency, 'FLOAT');
    const movement = { id, bucket, serialNumber, account, toVoucher: false, amountMinor: minor, now };
    await postVoucher(tx, { kind: 'CANCELLATION', ...movement });
    const amount = toText({ minor, decimals: balance.decimals });
    return {
      before: { balance: amount },
      after: { closed: 'CANCELED', refunded: amount, merchantId, transactionId: id },
    };
  });
}
