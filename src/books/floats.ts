import type { Operator } from '../context.ts';
import { findEntry } from '../ledger/movements.queries.ts';
import { getAccount, post } from '../ledger/movements.ts';
import { toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { type Booked, bookOnce } from './book-once.ts';

/** What an operator takes from a float: unused prepayment that is paid back, and top-ups that were wrong. */

type Refund = {
  readonly merchantId: number;
  readonly currency: string;
  readonly amountMinor: bigint;
  readonly decimals: number;
  readonly reference: string;
};

/**
 * Pays unused prepayment back to a merchant: FLOAT_REFUND, from its float to funding.
 * @throws Refusal `18`, `94`, `50`
 */
export function refundFloat(operator: Operator, refund: Refund): Promise<Booked> {
  const { merchantId, currency, amountMinor, decimals, reference } = refund;
  const fingerprint = `${currency} ${amountMinor}`;
  const wanted = { merchantId, operation: 'float-refund', reference, fingerprint } as const;
  return bookOnce(operator, wanted, async ({ tx, id, now }) => {
    const debit = await getAccount(tx, merchantId, currency, 'FLOAT');
    const credit = await getAccount(tx, 0, currency, 'FUNDING');
    await post(tx, { kind: 'FLOAT_REFUND', id, debit, credit, amountMinor, merchantId, reference, now });
    return {
      action: 'float.refund',
      subject: `merchant ${merchantId}`,
      after: { currency, amount: toText({ minor: amountMinor, decimals }) },
    };
  });
}

export type Entry = {
  readonly id: string;
  readonly kind: string;
  readonly bucket: number;
  readonly debit_account: bigint;
  readonly credit_account: bigint;
  readonly amount_minor: bigint;
  readonly currency: string;
  readonly decimals: number;
  readonly merchant_id: number | null;
  readonly serial_number: bigint | null;
  readonly reference: string | null;
  readonly original_id: string | null;
};

/** A top-up by its transaction id. @throws Refusal `60` */
export async function getTopUp({ service }: Operator, transactionId: string): Promise<Entry> {
  const [entry] = await service.db.query<Entry>(findEntry(transactionId));
  if (entry?.kind !== 'TOP_UP')
    throw new Refusal('60', { message: 'Transaction not found: no top-up has this transaction id' });
  return entry;
}

/**
 * Takes a top-up back that was wrong, or a part of it: FLOAT_CORRECTION, once for each top-up.
 * @param amountMinor at most the amount of the top-up
 * @throws Refusal `18`, `94`, `60`, `13`, `58`, `50`
 */
export async function correctTopUp(
  operator: Operator,
  { topUp, amountMinor, reference }: { topUp: Entry; amountMinor: bigint; reference: string },
): Promise<Booked> {
  const { currency, decimals } = topUp;
  const merchantId = topUp.merchant_id as number;
  const fingerprint = `${topUp.id} ${amountMinor}`;
  const wanted = { merchantId, operation: 'float-correct', reference, fingerprint } as const;
  return bookOnce(operator, wanted, async ({ tx, id, now }) => {
    const [debit, credit] = [topUp.credit_account, topUp.debit_account];
    const originalId = topUp.id;
    const movement = { kind: 'FLOAT_CORRECTION', id, debit, credit, amountMinor, merchantId, now };
    await post(tx, { ...movement, originalId, reference });
    return {
      action: 'float.correct',
      subject: `merchant ${merchantId}`,
      before: { topUp: topUp.id, amount: toText({ minor: topUp.amount_minor, decimals }) },
      after: { currency, amount: toText({ minor: amountMinor, decimals }) },
    };
  });
}
