import { audit, type Change } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { ensureAccounts } from '../ledger/accounts.ts';
import { newId } from '../ledger/id.ts';
import { MOST_MINOR, type Money, toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { creditFloatAccount, insertTopUp, listFloatRows, updateLow } from './queries.ts';

export type Float = { readonly currency: string; readonly balance: Money };

/**
 * Puts money on a merchant's float, which funding pays: the journal row and the balance in one step.
 * @param amountMinor above zero, in the currency's minor units
 * @throws Refusal `13` where the float would hold more than JSON can tell exactly
 */
export async function topUp(
  operator: Operator,
  merchantId: number,
  currency: string,
  amountMinor: bigint,
): Promise<Float> {
  return operator.service.db.transaction(async (tx) => {
    const { float, change } = await bookTopUp(operator.service, tx, merchantId, currency, amountMinor);
    await audit(tx, operator, change);
    return float;
  });
}

/** A top-up as a part of a transaction, which tells the audit of the change. */
export async function bookTopUp(
  service: Service,
  tx: Queries,
  merchantId: number,
  currency: string,
  amountMinor: bigint,
): Promise<{ float: Float; change: Change }> {
  const now = service.clock();
  await ensureAccounts(tx, merchantId, currency);
  const [row] = await tx.query<{ id: bigint; balance_minor: bigint; decimals: number }>(
    creditFloatAccount(merchantId, currency, amountMinor),
  );
  if (!row) throw new Error('a float that was made sure of is not there');
  const { balance_minor, decimals } = row;
  if (balance_minor > MOST_MINOR) throw new Refusal('13', { message: 'the float would hold too much' });
  const id = newId(now);
  await tx.query(insertTopUp(id, merchantId, currency, row.id, amountMinor, now));
  const told = (minor: bigint) => toText({ minor, decimals });
  const change = {
    action: 'float.top-up',
    subject: `merchant ${merchantId}`,
    before: { currency, balance: told(balance_minor - amountMinor) },
    after: { currency, balance: told(balance_minor), amount: told(amountMinor), transactionId: id },
  };
  return { float: { currency, balance: { minor: balance_minor, decimals } }, change };
}

/**
 * Sets from where on a float counts as low.
 * @param lowMinor in minor units; null for a tenth of what it held after its last top-up
 * @returns false where the merchant has no float in the currency
 */
export async function setLow(
  operator: Operator,
  merchantId: number,
  currency: string,
  lowMinor: bigint | null,
): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    const [row] = await tx.query<{ decimals: number; before_minor: bigint | null }>(
      updateLow(merchantId, currency, lowMinor),
    );
    if (!row) return false;
    const told = (minor: bigint | null) => (minor === null ? null : toText({ minor, decimals: row.decimals }));
    await audit(tx, operator, {
      action: 'float.warn',
      subject: `merchant ${merchantId}`,
      before: { currency, below: told(row.before_minor) },
      after: { currency, below: told(lowMinor) },
    });
    return true;
  });
}

/** A merchant's floats, one for each currency it uses. */
export async function listFloats(db: Queries, merchantId: number): Promise<Float[]> {
  const rows = await db.query<{ currency: string; decimals: number; balance_minor: bigint }>(listFloatRows(merchantId));
  return rows.map((row) => ({ currency: row.currency, balance: { minor: row.balance_minor, decimals: row.decimals } }));
}
