import type { Database, Queries } from '../db/pool.ts';
import { decimalsOf, toText } from '../money.ts';
import { allowLongReading, checks, sumByKind } from './reconcile.queries.ts';

type Check = {
  readonly name: string;
  readonly ok: boolean;
  readonly checked: number;
  /** Some of what differs, each with its numbers; amounts in minor units. */
  readonly differing: readonly Readonly<Record<string, unknown>>[];
};

/** What all accounts of a kind hold together; exact, in major units. */
type Total = { readonly kind: string; readonly currency: string; readonly balance: string };

export type Reconciliation = {
  readonly ok: boolean;
  readonly checks: readonly Check[];
  readonly totals: readonly Total[];
};

/**
 * Proves the books: every stored balance against the journal, every journal row against its accounts, every batch against
 * its vouchers and its reserve, every update and replacement whole. All of it in one snapshot, while the service goes on.
 * @returns what each check found; `ok` only if nothing differs
 */
export async function reconcile(db: Pick<Database, 'transaction'>): Promise<Reconciliation> {
  return db.transaction(async (tx) => {
    for (const statement of allowLongReading) await tx.query(statement);
    const done: Check[] = [];
    for (const [name, statement] of Object.entries(checks)) {
      const [row] = await tx.query<{ checked: bigint; differing: Check['differing'] | null }>(statement());
      const differing = row?.differing ?? [];
      done.push({ name, ok: differing.length === 0, checked: Number(row?.checked ?? 0), differing });
    }
    const { check, totals } = await balanceTotals(tx);
    done.push(check);
    return { ok: done.every(({ ok }) => ok), checks: done, totals };
  }, 'repeatable read');
}

/** The accounts of a currency add up to nothing, with what is stored of floats and vouchers: what one was debited, another one was credited. */
async function balanceTotals(tx: Queries): Promise<{ check: Check; totals: Total[] }> {
  const rows = await tx.query<{ kind: string; currency: string; minor: string }>(sumByKind());
  const sums = new Map<string, bigint>();
  for (const { currency, minor } of rows) sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(minor));
  const differing = [...sums]
    .filter(([, sum]) => sum !== 0n)
    .map(([currency, sum]) => ({ currency, sumMinor: String(sum) }));
  for (const { kind, currency } of rows)
    if (kind === 'UNKNOWN') differing.push({ currency, sumMinor: 'on an account that is not there' });
  return {
    check: { name: 'totals', ok: differing.length === 0, checked: sums.size, differing },
    totals: rows.map(({ kind, currency, minor }) => ({
      kind,
      currency,
      balance: toText({ minor: BigInt(minor), decimals: decimalsOf(currency) ?? 0 }),
    })),
  };
}
