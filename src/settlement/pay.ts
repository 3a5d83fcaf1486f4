import { type Booked, bookOnce } from '../books/sweep.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { getAccount, post } from '../ledger/movements.ts';
import { toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';
import { settlementData } from './approve.ts';
import { insertPayout, listPayouts, lockSettlement, setState } from './queries.ts';
import { getSettlement, type Settlement } from './settlements.ts';

type Wanted = {
  readonly settlementId: number;
  /** The operator's, under which a repetition books once. */
  readonly reference: string;
  /** As the bank's statement shows it. */
  readonly bankReference: string;
  readonly valueDate: string;
};

/**
 * Books that an approved settlement was paid: PAYOUT, from the settlement account to funding. One that
 * was returned can be paid again.
 * @throws Refusal `18`, `94`, `60`; `58` where it is no settlement to be paid; `51` where the account
 *   holds less
 */
export function pay(operator: Operator, wanted: Wanted): Promise<Booked & { settlement: Settlement }> {
  return move(operator, wanted, 'PAYOUT');
}

/**
 * Books that a payout came back: PAYOUT_RETURN, from funding to the settlement account.
 * @throws Refusal `18`, `94`, `60`; `58` where it is not paid
 */
export function giveBack(operator: Operator, wanted: Wanted): Promise<Booked & { settlement: Settlement }> {
  return move(operator, wanted, 'PAYOUT_RETURN');
}

const KINDS = {
  PAYOUT: { operation: 'payout', from: ['APPROVED', 'RETURNED'], to: 'PAID', event: 'settlement.paid' },
  PAYOUT_RETURN: { operation: 'payout-return', from: ['PAID'], to: 'RETURNED', event: 'settlement.returned' },
} as const;

async function move(
  operator: Operator,
  { settlementId, reference, bankReference, valueDate }: Wanted,
  kind: keyof typeof KINDS,
): Promise<Booked & { settlement: Settlement }> {
  const { service } = operator;
  const { operation, from, to, event } = KINDS[kind];
  const { merchantId } = await getSettlement(service.db, settlementId);
  const fingerprint = `${settlementId} ${bankReference} ${valueDate}`;
  const booked = await bookOnce(
    operator,
    { merchantId, operation, reference, fingerprint },
    async ({ tx, id, now }) => {
      await tx.query(lockSettlement(settlementId));
      const { state, payable, currency, number } = await getSettlement(tx, settlementId);
      if (!(from as readonly string[]).includes(state))
        throw new Refusal('58', {
          message: `the settlement is ${state}: only ${from.join(' or ')} ones can be ${to}`,
        });
      if (payable.minor === 0n)
        throw new Refusal('58', { message: 'nothing is to be paid: the balance is carried over' });
      const settlement = await getAccount(tx, merchantId, currency, 'SETTLEMENT');
      const funding = await getAccount(tx, 0, currency, 'FUNDING');
      const [debit, credit] = kind === 'PAYOUT' ? [settlement, funding] : [funding, settlement];
      const amountMinor = payable.minor;
      const originalId = kind === 'PAYOUT' ? null : await lastPayout(tx, settlementId);
      await post(tx, { kind, id, debit, credit, amountMinor, merchantId, originalId, reference, now });
      await tx.query(insertPayout({ id, settlementId, kind, amountMinor, bankReference, valueDate, now }));
      await tx.query(setState(settlementId, to));
      const data = { ...settlementData(await getSettlement(tx, settlementId)), bankReference, valueDate };
      await enqueueEvent(tx, {
        merchantId,
        type: event,
        eventId: newId(now),
        subjectId: null,
        data,
        now,
      });
      return {
        action: event,
        subject: `settlement ${settlementId}`,
        before: { state },
        after: { state: to, number, amount: toText(payable), currency, bankReference, valueDate },
      };
    },
  );
  return { ...booked, settlement: await getSettlement(service.db, settlementId) };
}

async function lastPayout(tx: Queries, settlementId: number): Promise<string> {
  const payouts = await tx.query<{ id: string; kind: string }>(listPayouts(settlementId));
  const last = payouts.findLast(({ kind }) => kind === 'PAYOUT');
  if (!last) throw new Error(`settlement ${settlementId} is paid, and has no payout`);
  return last.id;
}
