import { createHash } from 'node:crypto';
import { audit } from '../audit/audit.ts';
import { type Booked, bookOnce } from '../books/sweep.ts';
import type { Actor, Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { type Money, toNumber, toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';
import { type Approved, drawStatement, writeStatement } from './document.ts';
import { computeInterval } from './draft.ts';
import {
  answerDispute,
  approveSettlement,
  insertDispute,
  insertPayout,
  listPayouts,
  lockMerchantSettlements,
  lockSettlement,
  setState,
  takeNumber,
} from './queries.ts';
import { getSettlement, linesOf, numberText, type Settlement } from './settlements.ts';
import { ratesOf } from './steps.ts';
import { termsOn } from './terms.ts';

/**
 * Approves a draft: gives it a number, and freezes its documents. Nothing in an approved settlement changes
 * any more. A settlement that is already approved is returned unchanged.
 * @throws Refusal `60`; `58` if the draft has to be made again
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
    const { closing, outstanding } = draft;
    if (
      now.payableMinor !== payable.minor ||
      now.closingMinor !== closing.minor ||
      now.outstandingMinor !== outstanding.minor
    )
      throw new Refusal('58', { message: 'an earlier settlement has changed since: draft it again' });
    const year = Number(lastDay.slice(0, 4));
    const [taken] = await tx.query<{ number: number }>(takeNumber(merchantId, year));
    if (!taken) throw new Error('no number for a settlement');
    const approvedAt = service.clock();
    const number = numberText(merchantId, year, taken.number);
    const { csv, pdf, contentHash } = await drawDocuments(tx, { ...draft, number, approvedAt });
    await tx.query(
      approveSettlement(id, {
        year,
        number: taken.number,
        by: bothOf(actor),
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
    // Four eyes compare what there was before: a draft that was made again has to be confirmed.
    const sum = (money: Money) => toSum(currency, money);
    const before = { firstDay, lastDay, closing: sum(draft.closing), payable: sum(payable) };
    // `reconcile` compares the settlement with this entry.
    const after = {
      number,
      payable: sum(payable),
      dueOn: draft.dueOn,
      contentHash: contentHash.toString('hex'),
      pdfHash: createHash('sha256').update(pdf).digest('hex'),
    };
    await audit(tx, operator, { action: 'settlement.approve', subject: `settlement ${id}`, before, after });
    return { settlement, replayed: false };
  });
}

/** Returns the documents of a settlement, with the hash of the CSV. */
async function drawDocuments(tx: Queries, approved: Approved) {
  const lines = await linesOf(tx, approved);
  const csv = writeStatement(approved, lines);
  const contentHash = createHash('sha256').update(csv).digest();
  const hashed = { ...approved, contentHash: contentHash.toString('hex') };
  return { csv, contentHash, pdf: await drawStatement(hashed, lines, await ratesOf(tx, approved)) };
}

/** Returns the names of who proposed something, and of who approved it. */
const bothOf = ({ name, approvedBy }: Actor) => (approvedBy === undefined ? name : `${name}, ${approvedBy}`);

/** Returns a settlement as webhooks show it. */
function settlementData({ id, number, state, currency, firstDay, lastDay, payable, dueOn }: Settlement) {
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

type Wanted = {
  readonly settlementId: number;
  /** The operator's reference. A repetition under it books once. */
  readonly reference: string;
  /** The reference on the bank statement. */
  readonly bankReference: string;
  readonly valueDate: string;
};

/**
 * Books that an approved settlement was paid: PAYOUT, from the settlement account to funding. A settlement
 * whose payment was returned can be paid again.
 * @throws Refusal `18`, `94`, `60`; `58` if the settlement is not to be paid; `51` if the account holds less
 */
export function pay(operator: Operator, wanted: Wanted): Promise<Booked & { settlement: Settlement }> {
  return move(operator, wanted, 'PAYOUT');
}

/**
 * Books that a payout was returned: PAYOUT_RETURN, from funding to the settlement account.
 * @throws Refusal `18`, `94`, `60`; `58` if the settlement is not paid
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
        after: { state: to, number, amount: toSum(currency, payable), bankReference, valueDate },
        moved: [{ currency, minor: amountMinor, subjects: [`merchant ${merchantId}`] }],
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

/**
 * Records a merchant's dispute about a settlement. It changes no amount.
 * @param line the disputed line; null: the whole settlement
 * @returns the id of the dispute
 * @throws Refusal `60`; `58` for a draft, which the merchant has not seen
 */
export async function dispute(
  operator: Operator,
  { settlementId, line, comment }: { settlementId: number; line: string | null; comment: string },
): Promise<number> {
  const { service, actor } = operator;
  return service.db.transaction(async (tx) => {
    const { state } = await getSettlement(tx, settlementId);
    if (state === 'DRAFT')
      throw new Refusal('58', { message: 'the settlement is a draft: draft it again instead' });
    const [row] = await tx.query<{ id: number }>(
      insertDispute(settlementId, line, comment, actor.name, service.clock()),
    );
    const id = row?.id ?? 0;
    const after = { dispute: id, line, comment };
    await audit(tx, operator, { action: 'settlement.dispute', subject: `settlement ${settlementId}`, after });
    return id;
  });
}

/** Answers a dispute. A dispute is answered once. @throws Refusal `60` */
export async function answer(operator: Operator, id: number, text: string): Promise<void> {
  const { service, actor } = operator;
  await service.db.transaction(async (tx) => {
    const [row] = await tx.query<{ settlement_id: number }>(
      answerDispute(id, text, actor.name, service.clock()),
    );
    if (!row)
      throw new Refusal('60', { message: 'Not found: there is no such dispute, or it was answered before' });
    const subject = `settlement ${row.settlement_id}`;
    await audit(tx, operator, { action: 'settlement.answer', subject, after: { dispute: id, answer: text } });
  });
}
