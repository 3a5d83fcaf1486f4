import type { Queries } from '../db/pool.ts';
import { decimalsOf } from '../money.ts';
import {
  type AccountKind,
  findAccount,
  insertAccounts,
  insertFloat,
  updateFloat,
} from './accounts.queries.ts';

/** Accounts from this number on are the reserves of batches: this number plus the batch's. */
const FIRST_RESERVE = 5_000_000_000n;

/** The account of a batch's reserve. */
export function reserveOf(batchId: number): bigint {
  return FIRST_RESERVE + BigInt(batchId);
}

/**
 * Creates the accounts of a merchant in a currency (float and settlement), and the operator's own
 * (funding and transit), if they are missing. Safe to repeat, and at the same time in several
 * processes.
 * @param currency an ISO 4217 code
 */
export async function ensureAccounts(db: Queries, merchantId: number, currency: string): Promise<void> {
  const decimals = decimalsOf(currency);
  if (decimals === undefined) throw new Error(`${currency} is not a currency of ISO 4217`);
  await db.query(insertAccounts(merchantId, currency, decimals));
  await db.query(insertFloat(merchantId, currency));
}

/**
 * The number of an account; undefined if it does not exist yet.
 * @param merchantId 0 for the operator's own
 */
export async function accountOf(
  db: Queries,
  merchantId: number,
  currency: string,
  kind: AccountKind,
): Promise<bigint | undefined> {
  const [row] = await db.query<{ id: bigint }>(findAccount(merchantId, currency, kind));
  return row?.id;
}

/** Adds an amount to a float; the caller books where it comes from. */
export async function creditFloat(tx: Queries, accountId: bigint, amountMinor: bigint): Promise<void> {
  const credited = await tx.query(updateFloat(accountId, amountMinor));
  if (credited.length !== 1) throw new Error(`there is no float ${accountId}`);
}
