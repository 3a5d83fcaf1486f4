import type { Queries } from '../db/pool.ts';
import { decimalsOf } from '../money.ts';
import { insertAccounts } from './accounts.queries.ts';

/**
 * Makes sure that a merchant has its accounts in a currency (float and settlement), and the operator its own (funding and
 * breakage). Safe to repeat, and at the same time in several processes.
 * @param currency an ISO 4217 code
 */
export async function ensureAccounts(db: Queries, merchantId: number, currency: string): Promise<void> {
  const decimals = decimalsOf(currency);
  if (decimals === undefined) throw new Error(`${currency} is not a currency of ISO 4217`);
  await db.query(insertAccounts(merchantId, currency, decimals));
}
