import Type, { type Static } from 'typebox';
import { auditFirst } from '../audit/audit.ts';
import type { Context, Operator } from '../context.ts';
import { checkReference, giveUpReference } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { maskCode, type RedemptionUpdate } from '../ledger/transaction.ts';
import { permit } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { Nullable, Text, TransactionId, Word } from '../schema.ts';
import { repeatUpdate } from './update.ts';

/** A redemption whose outcome its merchant does not know, and no longer wants. */

export const GivenUp = Type.Object({
  outcome: Word(['reversed', 'already-reversed', 'given-up'], {
    description:
      '`reversed`: it was booked, and the money is back on the voucher. `already-reversed`: it was before. ' +
      '`given-up`: it was not booked, and never will be.',
  }),
  reference: Text,
  transactionId: Nullable(TransactionId, { description: 'The redemption; null if it was not booked.' }),
  reversalId: Nullable(TransactionId, { description: 'The reversal; null if there was nothing to reverse.' }),
  amount: Nullable(Type.Number(), { description: 'What the voucher got back; null if nothing was taken.' }),
  voucherCode: Nullable(Text, { description: 'The masked code of the voucher; null if nothing was taken.' }),
});

type GivenUp = Static<typeof GivenUp>;

/**
 * Gives up a redemption: reverses it if it was booked, and otherwise uses its reference up, so that a copy of
 * the request that arrives later is refused (`94`). Whatever the order of the two, no money is taken. It is
 * safe to repeat.
 *
 * The audit is written first, so that the tills that use the reference do not wait for it.
 * @param reference of the redemption, or its transaction id if it has none
 * @throws Refusal `18`, `03`; `58` if the redemption was changed to another amount; `44` if its voucher was
 *   canceled
 */
export async function giveUpRedemption(
  operator: Operator,
  context: Context,
  reference: string,
): Promise<GivenUp> {
  const { service, merchant, now } = context;
  checkReference(reference);
  permit(context, 'update-redemption');
  await auditFirst(operator, {
    action: 'redemption.give-up',
    subject: `merchant ${merchant.id}`,
    after: { reference },
  });
  const reversed = await reverse(context, reference);
  if (reversed) return reversed;
  const nothing = { transactionId: null, reversalId: null, amount: null, voucherCode: null };
  if (await giveUpReference(service, { merchantId: merchant.id, reference, id: newId(now) }))
    return { outcome: 'given-up', reference, ...nothing };
  // It was booked since it was looked for.
  const late = await reverse(context, reference);
  if (!late) throw new Error('a redemption was booked, and cannot be found');
  return late;
}

/** Reverses a redemption in full. Returns undefined if none was booked under the reference. */
async function reverse(context: Context, reference: string): Promise<GivenUp | undefined> {
  try {
    const { update, replayed } = await repeatUpdate(context, { reference, amountUsed: 0 });
    return shown(replayed ? 'already-reversed' : 'reversed', reference, update);
  } catch (error) {
    if (error instanceof Refusal && error.code === '60') return undefined;
    throw error;
  }
}

function shown(
  outcome: GivenUp['outcome'],
  reference: string,
  { original, cancellation }: RedemptionUpdate,
): GivenUp {
  return {
    outcome,
    reference,
    transactionId: original.transactionId,
    reversalId: cancellation.transactionId,
    amount: toNumber(original.amount),
    voucherCode: maskCode(original.code),
  };
}
