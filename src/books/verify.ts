import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { allowLongWork, type ClosingRow, listClosings } from './close.queries.ts';
import { readHashes } from './close.ts';
import { GENESIS, hashOfClosing } from './seal.ts';
import {
  hashSeals,
  listAuditedClosings,
  listBrokenAggregates,
  listBrokenReversals,
  listBrokenRows,
  listBrokenSlices,
  listBrokenSums,
  listLateRows,
} from './verify.queries.ts';

/** Something that has changed since the close. */
type Break = {
  readonly day: string;
  /**
   * `altered`, `removed`, `added`: a row of the journal. `late`: a row that was written after its slice was
   * sealed, and booked on a later day. `aggregate`, `seal`, `totals`: a value computed from the rows.
   * `closing`, `chain`, `audit`: the closing itself. `check`: a check that failed at the close.
   */
  readonly change: string;
  readonly transactionId?: string;
  readonly slice?: string;
  readonly detail?: string;
};

export type Verified = {
  readonly ok: boolean;
  readonly days: number;
  readonly rows: number;
  readonly breaks: readonly Break[];
};

type Stored = ClosingRow & { readonly hash: Buffer };

/**
 * Computes closed days again, from the rows up to the chain of closings, and reports everything that has
 * changed since the close.
 * @param interval days from (inclusive) and to (exclusive); without it, all closed days
 */
export async function verifyBooks(
  { db }: Service,
  interval: { from?: string | undefined; to?: string | undefined } = {},
): Promise<Verified> {
  return db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    const { from = null, to = null } = interval;
    const closings = await tx.query<Stored>(listClosings(null, to));
    const audited = await tx.query<{ subject: string; hash: string }>(listAuditedClosings());
    const known = new Map(audited.map(({ subject, hash }) => [subject.replace(/^day /, ''), hash]));
    const breaks: Break[] = [];
    let days = 0;
    let rows = 0;
    let before: Stored | undefined;
    for (const closing of closings) {
      const last = before;
      before = closing;
      breaks.push(...verifyLink(closing, last, known));
      if (from !== null && closing.day < from) continue;
      days++;
      rows += Number(closing.rows);
      breaks.push(...(await verifyDay(tx, closing, last)));
    }
    const gone = [...known.keys()].filter((day) => !closings.some((each) => each.day === day));
    for (const day of gone)
      if (to === null || day < to) breaks.push({ day, change: 'audit', detail: 'the closing was removed' });
    return { ok: breaks.length === 0, days, rows, breaks };
  }, 'repeatable read');
}

/** Compares a closing with the one before it, its own hash, and the audit. */
function verifyLink(closing: Stored, last: Stored | undefined, known: Map<string, string>): Break[] {
  const { day } = closing;
  const breaks: Break[] = [];
  if (!closing.previous_hash.equals(last?.hash ?? GENESIS) || (last && !isNext(last, closing)))
    breaks.push({ day, change: 'chain', detail: 'it does not follow the closing before it' });
  if (!hashOfClosing(closing).equals(closing.hash))
    breaks.push({ day, change: 'closing', detail: 'its hash is not that of its columns' });
  if (known.get(day) !== closing.hash.toString('hex'))
    breaks.push({ day, change: 'audit', detail: 'the audit recorded another hash' });
  return breaks;
}

const isNext = (last: Stored, closing: Stored) => last.ends_at.getTime() === closing.starts_at.getTime();

async function verifyDay(tx: Queries, closing: Stored, last: Stored | undefined): Promise<Break[]> {
  const { day, starts_at, ends_at } = closing;
  const breaks: Break[] = [];
  const [sealed] = await tx.query<{ rows: bigint; rows_hash: Buffer }>(hashSeals(starts_at, ends_at));
  if (sealed?.rows !== closing.rows || !sealed.rows_hash.equals(closing.rows_hash))
    breaks.push({ day, change: 'seal', detail: 'the seals of the slices are not those that were closed' });
  const slices = await tx.query<{ slice_at: Date }>(listBrokenSlices(starts_at, ends_at));
  for (const { slice_at } of slices) {
    const slice = slice_at.toISOString();
    const found = await tx.query<{ id: string; change: string }>(listBrokenRows(slice_at));
    for (const { id, change } of found) breaks.push({ day, change, transactionId: id, slice });
    if (found.length === 0) breaks.push({ day, change: 'seal', slice });
  }
  if (slices.length === 0) {
    type Sum = { slice_at: Date; currency: string; kind: string };
    for (const { slice_at, currency, kind } of await tx.query<Sum>(listBrokenAggregates(starts_at, ends_at)))
      breaks.push({
        day,
        change: 'aggregate',
        slice: slice_at.toISOString(),
        detail: `${kind} in ${currency}`,
      });
    type Reversal = { currency: string; merchant_id: number };
    const reversals = await tx.query<Reversal>(listBrokenReversals(day, starts_at, ends_at));
    for (const { currency, merchant_id } of reversals)
      breaks.push({
        day,
        change: 'aggregate',
        detail: `reversals of merchant ${merchant_id} in ${currency}`,
      });
  }
  type Broken = { what: string; currency: string; kind: string };
  const sums = await tx.query<Broken>(listBrokenSums(day, last?.day ?? null, starts_at, ends_at));
  for (const { what, currency, kind } of sums)
    breaks.push({ day, change: 'totals', detail: `${what}: ${kind} in ${currency}` });
  for (const { id, found_in } of await tx.query<{ id: string; found_in: string }>(
    listLateRows(starts_at, ends_at),
  ))
    breaks.push({ day, change: 'late', transactionId: id, detail: `booked on ${found_in}` });
  type Totals = {
    aggregates: Readonly<Record<string, string>>;
    checks: { name: string; differing: object[] }[];
  };
  const { aggregates, checks } = JSON.parse(closing.totals) as Totals;
  const hashes = await readHashes(tx, day);
  for (const what of new Set([...Object.keys(aggregates), ...Object.keys(hashes)]))
    if (aggregates[what] !== hashes[what])
      breaks.push({ day, change: 'totals', detail: `${what} are not those that were closed` });
  for (const { name, differing } of checks)
    if (differing.length > 0) breaks.push({ day, change: 'check', detail: name });
  return breaks;
}
