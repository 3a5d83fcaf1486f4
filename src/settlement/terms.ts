import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { Refusal } from '../refusal.ts';
import {
  findMerchantTerms,
  insertTerms,
  listTerms,
  lockLastClosed,
  type NewTerms,
  type TermsRow,
} from './terms.queries.ts';

export type Terms = Omit<NewTerms, 'now'> & {
  /** Null: all products without terms of their own. */
  readonly product: string | null;
};

/**
 * Makes terms for a merchant, or for one product of a merchant, from a day on. Terms are never edited:
 * newer ones take their place.
 * @throws Refusal `17` where the day is closed; `94` where there are terms from this day on already
 */
export async function makeTerms(
  operator: Operator,
  wanted: Omit<NewTerms, 'by' | 'now'> & { readonly product: string | null },
): Promise<void> {
  const { service, actor } = operator;
  await service.db.transaction(async (tx) => {
    const [closed] = await tx.query<{ day: string | null }>(lockLastClosed);
    if (closed?.day && wanted.validFrom <= closed.day)
      throw new Refusal('17', {
        message: `Invalid date: ${closed.day} is closed, so terms begin on a later day`,
      });
    const [made] = await tx.query(insertTerms({ ...wanted, by: actor.name, now: service.clock() }));
    if (!made)
      throw new Refusal('94', {
        message: `there are terms from ${wanted.validFrom} on already: terms are never edited`,
      });
    const { merchantId, productId: _id, ...after } = wanted;
    await audit(tx, operator, { action: 'settlement.terms', subject: `merchant ${merchantId}`, after });
  });
}

/** All terms of a merchant, those of the merchant first, by day. */
export async function readTerms(db: Queries, merchantId: number): Promise<Terms[]> {
  return (await db.query<TermsRow>(listTerms(merchantId))).map(toTerms);
}

/** The merchant's own terms on a day: period, least payout and delay. */
export async function termsOn(db: Queries, merchantId: number, day: string): Promise<Terms | undefined> {
  const [row] = await db.query<TermsRow>(findMerchantTerms(merchantId, day));
  return row && toTerms(row);
}

function toTerms(row: TermsRow): Terms {
  return {
    merchantId: row.merchant_id,
    productId: row.product_id,
    product: row.product,
    validFrom: row.valid_from,
    commissionPpm: row.commission_ppm,
    vatPpm: row.vat_ppm,
    period: row.period,
    leastPayout: row.least_payout,
    delayDays: row.delay_days,
    payee: row.payee,
    payeeLast4: row.payee_last4,
    by: row.made_by,
  };
}
