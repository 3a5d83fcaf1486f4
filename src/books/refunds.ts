import { changeIn } from '../agreement.ts';
import type { Context, Operator } from '../context.ts';
import { sql } from '../db/sql.ts';
import { findBooking } from '../ledger/booking.ts';
import { checkReference } from '../ledger/claims.ts';
import { merchantNamed, permit } from '../merchants/merchants.ts';
import { toPositiveMinor, toSum } from '../money.ts';
import { ABOVE_LIMIT, type Asked, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { getRedemption } from '../redemptions/correct.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { Amount, Line, minorOf, Reference, requireDecimals, TransactionId } from '../schema.ts';
import { showTransaction } from '../transactions/transactions.ts';
import { type Booked, bookOnce } from './once.ts';
import { BookedOnVoucher, balanceOf } from './vouchers.ts';

/** Refunds: what a merchant gives back of a redemption, in one or several parts. */

type Redemption = Awaited<ReturnType<typeof getRedemption>>;

/** What `refund_redemption` returns (sql/009-update-redemption.sql). */
type Row = { readonly outcome: RefusalCode | 'ok'; readonly serialNumber: bigint; readonly balance: bigint };

/**
 * Refunds a part of a redemption once under its reference: REFUND, from the settlement account of its
 * merchant to the voucher, or to the one that replaced it. All refunds of a redemption together give back
 * at most what it took, or what a correction left of it.
 * @throws Refusal as `bookOnce`; `44`; `51` if less is left of the redemption
 */
export async function refundRedemption(
  operator: Operator,
  { id: originalId, bucket, merchantId, currency }: Redemption,
  { amountMinor, reference }: { readonly amountMinor: bigint; readonly reference: string },
): Promise<Booked> {
  const wanted = { merchantId, operation: 'refund', reference } as const;
  const fingerprint = `${originalId} ${amountMinor}`;
  return bookOnce(operator, { ...wanted, fingerprint }, async ({ tx, id, now }) => {
    const [row] = await tx.query<Row>(sql`
select outcome, serial_number as "serialNumber", balance_minor as balance
from refund_redemption(${bucket}, ${originalId}, ${amountMinor}, ${id}, ${reference}, ${now})`);
    if (!row) throw new Error('a refund has no outcome');
    const { outcome, serialNumber, balance } = row;
    if (outcome === '51')
      throw new Refusal('51', { message: 'Insufficient balance: less than this is left of the redemption' });
    if (outcome !== 'ok') throw new Refusal(outcome);
    return {
      action: 'redemption.refund',
      subject: `voucher ${serialNumber}`,
      before: { redemption: originalId, balance: toSum(currency, balance - amountMinor) },
      after: { refunded: toSum(currency, amountMinor), balance: toSum(currency, balance) },
      moved: [{ currency, minor: amountMinor, subjects: [`merchant ${merchantId}`] }],
    };
  });
}

/**
 * Refunds a part of a redemption of the context's merchant.
 * @param request.reference of the redemption, or its transaction id if it has none
 * @throws Refusal `18`, `03`, `60`, `13`, and as `refundRedemption`
 */
export async function refundAtTill(
  operator: Operator,
  context: Context,
  request: { readonly reference: string; readonly amount: number; readonly refundReference: string },
): Promise<Booked> {
  checkReference(request.reference);
  permit(context, 'update-redemption');
  const booking = await findBooking(context, 'redeem', request.reference);
  if (!booking) throw new Refusal('60', { message: 'Redemption not found' });
  const redemption = await getRedemption(operator, booking.id);
  const amountMinor = toPositiveMinor(request.amount, requireDecimals(redemption.currency));
  return refundRedemption(operator, redemption, { amountMinor, reference: request.refundReference });
}

const refund = changing({
  name: 'redemption.refund',
  summary: 'Refund a part of a redemption to its voucher, on behalf of its merchant',
  description:
    'A redemption can be refunded several times, up to what it took. The merchant pays: its settlement ' +
    'becomes lower.',
  path: '/redemptions/:transactionId/refund',
  input: {
    transactionId: TransactionId,
    amount: Amount('What goes back to the voucher, in major units.'),
    reference: Reference,
    reason: Line(500, 'Why, for the audit.', 'The customer returned a part of the goods.'),
  },
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({
    why: 'It takes money from a merchant.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Refund {refunded} of a redemption by {merchant} to voucher {voucher}: {before} → {after}',
    async of(asked) {
      const { transactionId } = asked.input;
      const { before, after } = changeIn(asked);
      const { merchantId } = await getRedemption(asked.caller, transactionId);
      return {
        ...{ merchant: await merchantNamed(asked, merchantId), voucher: voucherOf(asked) },
        ...{ before: before['balance'], after: after['balance'], refunded: after['refunded'] },
        link: `/transactions/${transactionId}`,
      };
    },
  },
  risk: 'step-up',
  async run(caller, { transactionId, amount, reference }) {
    const redemption = await getRedemption(caller, transactionId);
    const amountMinor = minorOf(amount, redemption.currency, 'amount');
    const refunded = await refundRedemption(caller, redemption, { amountMinor, reference });
    const { serialNumber } = await showTransaction(caller.service, refunded.transactionId);
    return { ...(await balanceOf(caller, serialNumber as string)), ...refunded };
  },
});

/** Returns the voucher that got the money, which may have replaced that of the redemption. */
const voucherOf = ({ made }: Pick<Asked, 'made'>) => made[0]?.subject.replace('voucher ', '') ?? null;

export const OPERATIONS = tableOf(refund);
