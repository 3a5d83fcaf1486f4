import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { ensureAccounts } from '../ledger/accounts.ts';
import { newId } from '../ledger/id.ts';
import type { Money } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { creditFloatAccount, insertTopUp, listFloatRows, updateLow } from './queries.ts';

export type Float = { readonly currency: string; readonly balance: Money };

/** The greatest balance that a JSON number can tell exactly. */
const MOST_MINOR = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * Puts money on a merchant's float, which funding pays: the journal row and the balance in one step.
 * @param amountMinor above zero, in the currency's minor units
 * @param within a transaction that this belongs to
 * @throws Refusal `13` where the float would hold more than JSON can tell exactly
 */
export async function topUp(
  service: Service,
  merchantId: number,
  currency: string,
  amountMinor: bigint,
  within?: Queries,
): Promise<Float> {
  const now = service.clock();
  const book = async (tx: Queries): Promise<Float> => {
    await ensureAccounts(tx, merchantId, currency);
    const [float] = await tx.query<{ id: bigint; balance_minor: bigint; decimals: number }>(
      creditFloatAccount(merchantId, currency, amountMinor),
    );
    if (!float) throw new Error('a float that was made sure of is not there');
    if (float.balance_minor > MOST_MINOR) throw new Refusal('13', { message: 'the float would hold too much' });
    await tx.query(insertTopUp(newId(now), merchantId, currency, float.id, amountMinor, now));
    return { currency, balance: { minor: float.balance_minor, decimals: float.decimals } };
  };
  return within ? book(within) : service.db.transaction(book);
}

/**
 * Sets from where on a float counts as low.
 * @param lowMinor in minor units; null for a tenth of what it held after its last top-up
 * @returns false where the merchant has no float in the currency
 */
export async function setLow(
  db: Queries,
  merchantId: number,
  currency: string,
  lowMinor: bigint | null,
): Promise<boolean> {
  return (await db.query(updateLow(merchantId, currency, lowMinor))).length > 0;
}

/** A merchant's floats, one for each currency it uses. */
export async function listFloats(db: Queries, merchantId: number): Promise<Float[]> {
  const rows = await db.query<{ currency: string; decimals: number; balance_minor: bigint }>(listFloatRows(merchantId));
  return rows.map((row) => ({ currency: row.currency, balance: { minor: row.balance_minor, decimals: row.decimals } }));
}
