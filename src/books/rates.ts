import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { insertRate } from './reports/queries.ts';

/**
 * Sets what part of the vouchers of a product is estimated never to be redeemed (R5): with its author and
 * reason; never posted.
 * @throws Refusal `30` without a reason
 */
export async function setBreakageRate(
  operator: Operator,
  { productId, code, ratePpm }: { productId: number; code: string; ratePpm: number },
): Promise<void> {
  const { service, actor } = operator;
  const { name: by, reason } = actor;
  if (reason === null)
    throw new Refusal('30', { message: 'Invalid request: an estimate needs a reason (--reason)' });
  await service.db.transaction(async (tx) => {
    await tx.query(insertRate({ productId, ratePpm, by, reason, now: service.clock() }));
    await audit(tx, operator, {
      action: 'books.breakage-rate',
      subject: `product ${code}`,
      after: { ratePpm },
    });
  });
}
