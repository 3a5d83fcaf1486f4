import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { sql } from '../db/sql.ts';
import { Refusal } from '../refusal.ts';
import { requireOpen } from './days.ts';
import {
  type DormancyRule,
  findTreatmentOfSold,
  insertVatTreatment,
  lockProduct,
  upsertDormancyRule,
  type VatTreatment,
} from './tax.queries.ts';

/** The rules of reports that follow from a law: when a voucher is dormant, and how its VAT is treated. */

/** Makes a rule of dormancy, or changes it. */
export async function setDormancyRule(operator: Operator, rule: DormancyRule): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(upsertDormancyRule(rule));
    await audit(tx, operator, { action: 'books.dormancy', subject: `rule ${rule.name}`, after: rule });
  });
}

/**
 * Sets how the VAT of a product's vouchers is treated from a day on. By law, the treatment and the country
 * of a voucher are fixed when it is issued, so those of a product that has sold vouchers never change. Its
 * rate may.
 * @throws Refusal `17` if the day is closed; `94` if there is already a treatment from this day on, or
 *   another one of vouchers that were sold
 */
export async function setVatTreatment(operator: Operator, code: string, wanted: VatTreatment): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await requireOpen(tx, wanted.from, 'treatments');
    await tx.query(lockProduct(wanted.productId));
    const [sold] = await tx.query<Pick<VatTreatment, 'treatment' | 'country'>>(
      findTreatmentOfSold(wanted.productId),
    );
    if (sold && (sold.treatment !== wanted.treatment || sold.country !== wanted.country))
      throw new Refusal('94', {
        message:
          `vouchers of the product were sold as ${sold.treatment}, ${sold.country}, which was fixed at their ` +
          'issue: make another product',
      });
    const [made] = await tx.query(insertVatTreatment(wanted));
    if (!made)
      throw new Refusal('94', { message: `the product has a treatment from ${wanted.from} on already` });
    await audit(tx, operator, { action: 'books.vat', subject: `product ${code}`, after: wanted });
  });
}

/**
 * Sets the part of a product's vouchers that is estimated never to be redeemed (R5) from a day on, with its
 * author and reason. The estimate is never posted.
 * @throws Refusal `30` without a reason; `17` if the day is closed
 */
export async function setBreakageRate(
  operator: Operator,
  { productId, code, ratePpm, from }: { productId: number; code: string; ratePpm: number; from: string },
): Promise<void> {
  const { service, actor } = operator;
  const { name: by, reason } = actor;
  if (reason === null)
    throw new Refusal('30', { message: 'Invalid request: an estimate needs a reason (--reason)' });
  await service.db.transaction(async (tx) => {
    await requireOpen(tx, from, 'rates');
    await tx.query(sql`
insert into book_breakage_rates (product_id, valid_from, rate_ppm, set_by, reason, set_at)
values (${productId}, ${from}::date, ${ratePpm}, ${by}, ${reason}, ${service.clock()})`);
    await audit(tx, operator, {
      action: 'books.breakage-rate',
      subject: `product ${code}`,
      after: { ratePpm, from },
    });
  });
}
