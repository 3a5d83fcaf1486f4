import type { Context, Service } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { findMerchantRow } from './queries.ts';

type Row = {
  id: number;
  name: string;
  permissions: string[];
  opaque: boolean;
  suspended_at: Date | null;
  default_product_id: number;
};

/** Replaces the key id of a call when an operator acts: no key has this name. */
const OPERATOR = 'operator';

/**
 * Lets an operator act as a merchant, with the merchant's permissions and float.
 * @returns undefined if there is no such merchant
 * @throws Refusal `04`
 */
export async function actFor(service: Service, merchantId: number): Promise<Context | undefined> {
  const [row] = await service.db.query<Row>(findMerchantRow(merchantId));
  if (!row) return undefined;
  if (row.suspended_at) throw new Refusal('04');
  const merchant = {
    id: row.id,
    name: row.name,
    permissions: new Set(row.permissions),
    opaque: row.opaque,
    suspended: false,
    defaultProductId: row.default_product_id,
  };
  return { service, merchant, keyId: OPERATOR, now: service.clock() };
}
