import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { findEntry } from '../ledger/movements.queries.ts';
import { toText, unitOf } from '../money.ts';
import { correctOne } from '../redemptions/queries.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import type { Booked } from './book-once.ts';
import type { Entry } from './floats.ts';

/** A redemption by its transaction id. @throws Refusal `60` */
export async function getRedemption({ service }: Operator, transactionId: string): Promise<Entry> {
  const [entry] = await service.db.query<Entry>(findEntry(transactionId));
  if (entry?.kind !== 'REDEMPTION' || entry.original_id !== null)
    throw new Refusal('60', { message: 'Redemption not found: no redemption has this transaction id' });
  return entry;
}

type Row = {
  readonly outcome: RefusalCode | 'ok' | 'again';
  readonly reversal_id: string;
  readonly new_id: string | null;
  readonly new_minor: bigint;
};

/** The reversal, and the redemption in the place of the first; null after a full reversal. */
type Corrected = Booked & { readonly newId: string | null };

/**
 * Corrects the amount of a redemption on a merchant's behalf, as the merchant's own update would: once,
 * in one step. The same correction again returns the first result.
 * @param amountMinor 0 reverses it in full
 * @throws Refusal `30` without a reason; `44`, `43`, `54`, `58`, `51`
 */
export async function correctRedemption(
  operator: Operator,
  redemption: Entry,
  amountMinor: bigint,
): Promise<Corrected> {
  const { service, actor } = operator;
  if (actor.reason === null)
    throw new Refusal('30', { message: 'Invalid request: a correction needs a reason (--reason)' });
  const { decimals } = redemption;
  const text = (minor: bigint) => toText({ minor, decimals });
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const { outcome, ...made } = await update(operator, tx, redemption, amountMinor);
      const replayed = outcome === '58' && made.new_minor === amountMinor;
      const corrected = { transactionId: made.reversal_id, newId: made.new_id, replayed };
      if (replayed) return corrected;
      if (outcome !== 'ok') throw new Refusal(outcome as RefusalCode);
      await audit(tx, operator, {
        action: 'redemption.correct',
        subject: `voucher ${redemption.serial_number}`,
        before: { redemption: redemption.id, amount: text(redemption.amount_minor) },
        after: { amount: text(amountMinor), transactionId: made.reversal_id },
      });
      return corrected;
    }),
  );
}

async function update(
  { service }: Operator,
  tx: Queries,
  redemption: Entry,
  amountMinor: bigint,
): Promise<Row> {
  const now = service.clock();
  const [row] = await tx.query<Row>(
    correctOne({
      bucket: redemption.bucket,
      merchantId: redemption.merchant_id as number,
      originalId: redemption.id,
      amountUnits: amountMinor * unitOf(redemption.decimals),
      ids: [newId(now), newId(now), newId(now)],
      now,
    }),
  );
  if (!row) throw new Error('a correction has no outcome');
  return row;
}
