import { audit } from '../audit/audit.ts';
import type { Context, Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import { sql } from '../db/sql.ts';
import { findBooking } from '../ledger/booking.ts';
import { checkReference } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { getAccount, postVoucher } from '../ledger/journal.ts';
import { permit } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { announceVoucher } from '../webhooks/outbox.ts';

/** The voiding of an activation by the merchant that paid for it: a card that was not sold after all. */

/** The outcome of `decide_void` (sql/012-vouchers.sql). */
type Decided = {
  readonly outcome: RefusalCode | 'ok' | 'replay';
  /** The row that voided the activation earlier; null if there is none. */
  readonly voidId: string | null;
  readonly amount: bigint;
  readonly currency: string;
};

/** The reasons why an activation is not voided, where their usual texts do not say it. */
const REFUSED: Partial<Record<RefusalCode, string>> = {
  '41': 'Voucher already activated: more than 24 hours ago, so only the operator cancels it',
  '42': 'Voucher already redeemed: it was used, or its balance was changed, since its activation',
  '47': 'Voucher not accepted here: another merchant paid for it',
  '60': 'Transaction not found: no activation of this merchant has this reference',
};

const refused = (code: RefusalCode) => new Refusal(code, REFUSED[code] ? { message: REFUSED[code] } : {});

/**
 * Voids an activation that the merchant of the context made and paid for, within 24 hours and before the
 * voucher was used: CANCELLATION, to its float. The voucher is canceled for good. The same request again
 * returns the first result.
 * @param reference of the activation, or its transaction id if it has none
 * @throws Refusal `18`, `03`, `60`, `44`, `43`, `54`; `41` after 24 hours, `47` if another merchant paid,
 *   `42` if the voucher was used
 */
export async function voidActivation(
  operator: Operator,
  context: Context,
  reference: string,
): Promise<{ readonly transactionId: string; readonly replayed: boolean }> {
  checkReference(reference);
  permit(context, 'activate');
  const { service, merchant } = context;
  const activation = await findBooking(context, 'activate', reference);
  if (!activation) throw refused('60');
  const { id: originalId, serialNumber } = activation;
  const bucket = service.buckets.ofSerial(serialNumber);
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const now = service.clock();
      const [decided] = await tx.query<Decided>(sql`
select outcome, void_id as "voidId", amount_minor as amount, currency
from decide_void(${bucket}, ${serialNumber}, ${originalId}, ${merchant.id}, ${now})`);
      if (!decided) throw new Error('voiding an activation has no outcome');
      const { outcome, voidId, amount: amountMinor, currency } = decided;
      if (outcome === 'replay') return { transactionId: voidId as string, replayed: true };
      if (outcome !== 'ok') throw refused(outcome);
      const id = newId(now);
      const account = await getAccount(tx, merchant.id, currency, 'FLOAT');
      const movement = { id, bucket, serialNumber, account, toVoucher: false, amountMinor, originalId, now };
      await postVoucher(tx, { kind: 'CANCELLATION', ...movement });
      const canceled = { bucket, serialNumber, type: 'voucher.canceled', amountMinor, now } as const;
      await announceVoucher(tx, canceled);
      await audit(tx, operator, {
        action: 'till.void',
        subject: `voucher ${serialNumber}`,
        before: { balance: toSum(currency, amountMinor) },
        after: {
          closed: 'CANCELED',
          refunded: toSum(currency, amountMinor),
          merchantId: merchant.id,
          transactionId: id,
        },
      });
      return { transactionId: id, replayed: false };
    }),
  );
}
