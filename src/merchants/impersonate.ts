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

/** Stands in the place of an API key where the operator acts: no key has such a name. */
const OPERATOR = 'operator';

/**
 * What the operator does on behalf of a merchant is asked for as that merchant: its permissions and its
 * float hold.
 * @returns undefined where there is no such merchant
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
