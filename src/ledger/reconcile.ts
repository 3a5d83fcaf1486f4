import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { isDistributed } from '../db/distribute.ts';
import { retrying } from '../db/errors.ts';
import { type Database, finds, type Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { toText } from '../money.ts';
import { HOUR_MS } from '../time.ts';
import { idFloor } from './id.ts';
import { BALANCES, readHistory, sumByKind, sumMoved, TOUCHED } from './reconcile.balances.ts';
import { AGES, BOOKS, OPENING, SETTLEMENTS } from './reconcile.books.ts';
import { BATCHES, RECORDS, SET, UNSET } from './reconcile.records.ts';
import { type Checks, EVER, EXAMPLES, type Since, statementOf } from './reconcile.scope.ts';

/** Every check of the whole database, in the order of the report. */
const WHOLE: Checks = {
  ...BOOKS,
  ...BALANCES,
  ...AGES,
  ...BATCHES,
  ...RECORDS,
  ...SETTLEMENTS,
  ...SET,
  ...UNSET,
};

/** Checks of closed days, and checks that read all vouchers. */
const WHOLE_ONLY = [
  ...['ages', 'reserve-shares', 'replacements', 'buckets'],
  ...Object.keys(SETTLEMENTS),
  ...Object.keys(UNSET),
];

/** Returns the checks of rows after a closing, or every check. */
export function checksOf({ day, readsVouchers }: Since): Checks {
  if (day === null) return WHOLE;
  const left = readsVouchers ? WHOLE_ONLY : [...WHOLE_ONLY, 'voucher-totals'];
  const all = Object.entries({ ...OPENING, ...WHOLE, ...TOUCHED });
  return Object.fromEntries(all.filter(([name]) => !left.includes(name)));
}

type Check = {
  readonly name: string;
  readonly ok: boolean;
  readonly checked: number;
  /** Some of the differences, each with its numbers; amounts in minor units. */
  readonly differing: readonly Readonly<Record<string, unknown>>[];
};

/** The exact total balance of the accounts of a kind, in major units. */
type Total = { readonly kind: string; readonly currency: string; readonly balance: string };

export type Reconciliation = {
  readonly ok: boolean;
  /** The last closed day, with whose balances it began; null: it read everything. */
  readonly since: string | null;
  readonly checks: readonly Check[];
  readonly totals: readonly Total[];
};

/**
 * On several shards, rows with an older stamp are visible on all of them. A stamp may be 150 seconds old when
 * it is booked (sql/005-rules.sql). After a failure, a worker commits its prepared transactions a minute
 * after it is back.
 */
const QUIET_MS = 300_000;

/** How long a booking that the coordinator has committed may take until it is visible on its shard. */
const VISIBLE_MS = 2_000;
const LOOK_MS = 100;
const PREPARED_LOOK_MS = 1_000;

/**
 * Proves the books: every stored balance against the journal, every journal row against its accounts and its
 * slice, every batch against its vouchers and its reserve, and that every update and replacement is complete,
 * every reference is used, and every top-up is in the audit. On one server it uses a single snapshot while
 * the service continues; on several shards it checks one shard after the other.
 * @param sinceClosing checks only rows after the last closed day, whose proof is `verifyBooks`; everything
 *   if no day is closed
 * @returns the result of each check; `ok` only if there are no differences
 */
export async function reconcile(
  service: Pick<Service, 'db' | 'buckets' | 'clock'>,
  { sinceClosing = false }: { readonly sinceClosing?: boolean } = {},
): Promise<Reconciliation> {
  const { db, clock, buckets } = service;
  const quietBefore = buckets.isSharded ? new Date(clock().getTime() - QUIET_MS) : null;
  const since = sinceClosing ? await retrying(() => lastClosing(db, quietBefore === null)) : EVER;
  const result = await retrying(() => check(service, quietBefore, since));
  const floats = result.checks.find(({ name }) => name === 'float-balances');
  if (quietBefore === null || !floats || floats.ok) return result;
  const differing: Check['differing'][number][] = [];
  for (const each of floats.differing)
    if (!(await isBalancedAtLast(db, BigInt(String(each['account'])), since, quietBefore)))
      differing.push(each);
  const looked = { ...floats, ok: differing.length === 0, differing: differing.slice(0, EXAMPLES) };
  const checks = result.checks.map((each) => (each === floats ? looked : each));
  return { ...result, ok: checks.every(({ ok }) => ok), checks };
}

/**
 * Whether a float fits its journal rows, at the latest when servers that failed have committed what they had
 * prepared: the coordinator may have committed a booking whose rows on a worker still wait for that.
 */
async function isBalancedAtLast(db: Database, account: bigint, since: Since, quietBefore: Date) {
  for (const until = performance.now() + QUIET_MS; ; await sleep(PREPARED_LOOK_MS)) {
    if (await retrying(() => isBalanced(db, account, since, quietBefore))) return true;
    if (performance.now() > until || !(await arePrepared(db))) return false;
  }
}

/** Whether a server of a cluster has prepared transactions that should have been committed, or is away. */
async function arePrepared(db: Database): Promise<boolean> {
  if (!(await isDistributed(db))) return false;
  return finds(
    db,
    sql`
select from run_command_on_all_nodes(
  $$select count(*) from pg_prepared_xacts where prepared < now() - interval '2 seconds'$$)
where not success or result <> '0'`,
  );
}

/**
 * Whether a float fits its journal rows. On several shards they are read at two different times. Rows before
 * `quietBefore` are summed without a lock, and only the rest under the lock of the float. The last booking
 * before the lock may become visible on its shard only a moment later.
 */
async function isBalanced(db: Database, account: bigint, since: Since, quietBefore: Date): Promise<boolean> {
  const floor = idFloor(quietBefore);
  const [opening, ended] = await db.transaction(async (tx) => {
    await readHistory(tx);
    // The balance of a float at the end of the last closing.
    const [held] = await tx.query<{ minor: bigint }>(sql`
select o.balance_minor as minor
from book_balances o
join floats f on f.merchant_id = o.merchant_id and f.currency = o.currency
where f.account_id = ${account} and o.account_kind = 'FLOAT' and o.day = ${since.day}::date`);
    return [held?.minor ?? 0n, await sumMoved(tx, account, since, floor, true)];
  }, 'repeatable read');
  return db.transaction(async (tx) => {
    const [float] = await tx.query<{ balance: bigint }>(
      sql`select balance_minor as balance from floats where account_id = ${account} for update`,
    );
    for (const until = performance.now() + VISIBLE_MS; ; await sleep(LOOK_MS)) {
      const recent = await sumMoved(tx, account, since, floor, false);
      if (float?.balance === opening + ended + recent) return true;
      if (performance.now() > until) return false;
    }
  });
}

function check(
  { db, buckets, clock }: Pick<Service, 'db' | 'buckets' | 'clock'>,
  quietBefore: Date | null,
  since: Since,
): Promise<Reconciliation> {
  return db.transaction(async (tx) => {
    await readHistory(tx);
    const done: Check[] = [];
    for (const [name, queriesOf] of Object.entries(checksOf(since))) {
      const queries = queriesOf({ quietBefore, buckets: buckets.all, since, now: clock() });
      const [row] = await tx.query<{ checked: bigint; differing: Check['differing'] | null }>(
        statementOf(queries),
      );
      const differing = row?.differing ?? [];
      done.push({ name, ok: differing.length === 0, checked: Number(row?.checked ?? 0), differing });
    }
    const { check: sum, totals } = await balanceTotals(tx, since);
    if (quietBefore === null) done.push(sum);
    return { ok: done.every(({ ok }) => ok), since: since.day, checks: done, totals };
  }, 'repeatable read');
}

/** Up to this number of vouchers, a reconciliation reads all of them every night. */
const FEW_VOUCHERS = 1_000_000;

/** Finds the last closing. On several shards, vouchers cannot be read together with the rows since. */
async function lastClosing(db: Queries, isOneServer: boolean): Promise<Since> {
  const [last] = await db.query<{ day: string; endsAt: Date; areFew: boolean }>(sql`
select day::text as day, ends_at as "endsAt",
  (select reltuples from pg_class where oid = 'vouchers'::regclass) <= ${FEW_VOUCHERS} as "areFew"
from book_closings order by day desc limit 1`);
  if (!last) return EVER;
  const id = idFloor(new Date(last.endsAt.getTime() - HOUR_MS));
  return { day: last.day, at: last.endsAt.toISOString(), id, readsVouchers: isOneServer && last.areFew };
}

type TotalRow = { kind: string; currency: string; decimals: number | null; minor: string };

/**
 * Checks that the accounts of each currency sum to zero, with the stored balances of floats and vouchers:
 * every debit of one account is the credit of another.
 */
async function balanceTotals(tx: Queries, since: Since): Promise<{ check: Check; totals: Total[] }> {
  const rows = await tx.query<TotalRow>(sumByKind(since));
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
