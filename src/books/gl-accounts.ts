import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { type GlAccountRow, upsertGlAccount } from './export.queries.ts';

/** The kinds of accounts that another bookkeeping has numbers for. */
export const GL_KINDS = [
  'FUNDING',
  'FLOAT',
  'RESERVE',
  'VOUCHER',
  'SETTLEMENT',
  'TRANSIT',
  'FEES',
  'VAT',
  'GOODWILL',
  'UNCLAIMED',
  'BREAKAGE',
] as const;

/**
 * Gives a kind of account its number in another bookkeeping: of one merchant, of one product, or of all (0).
 */
export async function setGlAccount(operator: Operator, row: GlAccountRow): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(upsertGlAccount(row));
    const {
      account_kind: kind,
      merchant_id: merchantId,
      product_id: productId,
      account,
      tax_code: taxCode,
    } = row;
    const after = { kind, merchantId, productId, account, taxCode };
    await audit(tx, operator, { action: 'books.account', subject: 'books', after });
  });
}
