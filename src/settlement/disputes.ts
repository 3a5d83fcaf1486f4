import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { answerDispute, insertDispute } from './queries.ts';
import { getSettlement } from './settlements.ts';

/**
 * Writes down a merchant's doubt about a settlement. It changes no number.
 * @param line what it is about; null: the settlement as a whole
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

/** Answers a dispute, once. @throws Refusal `60` */
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
