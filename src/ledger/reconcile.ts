import { isSharded, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { toText } from '../money.ts';
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

/** Over shards, what was booked so long ago is visible on all of them. */
const QUIET_MS = 60_000;

/**
 * Proves the books: every stored balance against the journal, every journal row against its accounts,
 * every batch against its vouchers and its reserve, every update and replacement whole, every reference
 * used up, every top-up in the audit. On one server all of it in one snapshot, while the service goes on;
 * over shards, shard by shard.
 * @returns what each check found; `ok` only if nothing differs
 */
export async function reconcile(service: Pick<Service, 'db' | 'buckets' | 'clock'>): Promise<Reconciliation> {
  const { db, clock } = service;
  const quietBefore = isSharded(service) ? new Date(clock().getTime() - QUIET_MS) : null;
  return db.transaction(async (tx) => {
    for (const statement of allowLongReading) await tx.query(statement);
    const done: Check[] = [];
    for (const [name, statement] of Object.entries(checks)) {
      const [row] = await tx.query<{ checked: bigint; differing: Check['differing'] | null }>(
        statement({ quietBefore, buckets: service.buckets.all }),
      );
      const differing = row?.differing ?? [];
      done.push({ name, ok: differing.length === 0, checked: Number(row?.checked ?? 0), differing });
    }
    const { check, totals } = await balanceTotals(tx);
    if (quietBefore === null) done.push(check);
    return { ok: done.every(({ ok }) => ok), checks: done, totals };
  }, 'repeatable read');
}

type TotalRow = { kind: string; currency: string; decimals: number | null; minor: string };

/**
 * The accounts of a currency sum to zero, with what is stored of floats and vouchers: what one was
 * debited, another one was credited.
 */
async function balanceTotals(tx: Queries): Promise<{ check: Check; totals: Total[] }> {
  const rows = await tx.query<TotalRow>(sumByKind());
  const sums = new Map<string, bigint>();
  for (const { currency, minor } of rows) sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(minor));
  const differing = [...sums]
    .filter(([, sum]) => sum !== 0n)
    .map(([currency, sum]) => ({ currency, sumMinor: String(sum) }));
  for (const { kind, currency } of rows)
    if (kind === 'UNKNOWN') differing.push({ currency, sumMinor: 'on an account that does not exist' });
  const decimals = new Map(
    rows.flatMap((row) => (row.decimals === null ? [] : [[row.currency, row.decimals] as const])),
  );
  return {
    check: { name: 'totals', ok: differing.length === 0, checked: sums.size, differing },
    totals: rows.map(({ kind, currency, minor }) => ({
      kind,
      currency,
      balance: toText({ minor: BigInt(minor), decimals: decimals.get(currency) ?? 0 }),
    })),
  };
}
