import { createHash } from 'node:crypto';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { newId } from '../ledger/id.ts';
import { toNumber, toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';
import { drawStatement, writeStatement } from './document.ts';
import { computeInterval } from './draft.ts';
import { approveSettlement, lockMerchantSettlements, lockSettlement, takeNumber } from './queries.ts';
import { getSettlement, linesOf, numberText, type Settlement } from './settlements.ts';
import { termsOn } from './terms.ts';

/**
 * Approves a draft: it gets its number, and its documents are frozen. Nothing of it changes any more. An
 * approved settlement is returned as it is.
 * @throws Refusal `60`; `58` where the draft has to be made again
 */
export async function approve(
  operator: Operator,
  id: number,
): Promise<{ settlement: Settlement; replayed: boolean }> {
  const { service, actor } = operator;
  return service.db.transaction(async (tx) => {
    const found = await getSettlement(tx, id);
    await tx.query(lockMerchantSettlements(found.merchantId));
    await tx.query(lockSettlement(id));
    const draft = await getSettlement(tx, id);
    if (draft.state !== 'DRAFT') return { settlement: draft, replayed: true };
    const { merchantId, currency, firstDay, lastDay, payable } = draft;
    const terms = await termsOn(tx, merchantId, lastDay);
    const now = await computeInterval(
      tx,
      { merchantId, currency, decimals: payable.decimals, firstDay, lastDay },
      terms,
    );
    if (now.payableMinor !== payable.minor || now.closingMinor !== draft.closing.minor)
      throw new Refusal('58', { message: 'an earlier settlement has changed since: draft it again' });
    const year = Number(lastDay.slice(0, 4));
    const [taken] = await tx.query<{ number: number }>(takeNumber(merchantId, year));
    if (!taken) throw new Error('no number for a settlement');
    const approvedAt = service.clock();
    const number = numberText(merchantId, year, taken.number);
    const lines = await linesOf(tx, draft);
    const csv = writeStatement({ ...draft, number, approvedAt }, lines);
    const contentHash = createHash('sha256').update(csv).digest();
    const pdf = await drawStatement(
      { ...draft, number, approvedAt, contentHash: contentHash.toString('hex') },
      lines,
    );
    await tx.query(
      approveSettlement(id, {
        year,
        number: taken.number,
        by: actor.name,
        now: approvedAt,
        contentHash,
        csv,
        pdf,
      }),
    );
    const settlement = await getSettlement(tx, id);
    const data = settlementData(settlement);
    const eventId = newId(approvedAt);
    await enqueueEvent(tx, {
      merchantId,
      type: 'settlement.approved',
      eventId,
      subjectId: null,
      data,
      now: approvedAt,
    });
    const after = { number, payable: toText(payable), currency, contentHash: contentHash.toString('hex') };
    await audit(tx, operator, { action: 'settlement.approve', subject: `settlement ${id}`, after });
    return { settlement, replayed: false };
  });
}

/** A settlement as webhooks show it. */
export function settlementData({
  id,
  number,
  state,
  currency,
  firstDay,
  lastDay,
  payable,
  dueOn,
}: Settlement) {
  return {
    settlementId: String(id),
    number,
    state,
    firstDay,
    lastDay,
    currency,
    payable: toNumber(payable),
    dueOn,
  };
}
