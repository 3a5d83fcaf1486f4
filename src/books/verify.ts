import { isDeepStrictEqual } from 'node:util';
import Type, { type Static } from 'typebox';
import { verifyAudit } from '../audit/verify.ts';
import type { Service } from '../context.ts';
import type { Database, Queries } from '../db/pool.ts';
import { reading } from '../operation.ts';
import { VERIFY } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Count, Day, Input, Text, TransactionId } from '../schema.ts';
import { allowLongWork, type ClosingRow, listClosings } from './close.queries.ts';
import { readAges, readHashes } from './close.ts';
import { checkInterval } from './days.ts';
import { GENESIS, hashOfClosing } from './seal.ts';
import {
  findDay,
  findInterrupted,
  hashSeals,
  insertVerification,
  listAuditedClosings,
  listBrokenAggregates,
  listBrokenReversals,
  listBrokenRows,
  listBrokenSlices,
  listBrokenSums,
  listLateRows,
  setVerified,
} from './verify.queries.ts';

/** Something that has changed since the close. */
const BreakSchema = Type.Object({
  day: Day,
  change: Type.String({
    description:
      '`altered`, `removed`, `added`: a row of the journal. `late`: a row that was written after its slice was ' +
      'sealed, and booked on a later day. `aggregate`, `seal`, `totals`: a value computed from the rows. ' +
      '`closing`, `chain`, `audit`: the closing itself. `check`: a check that failed at the close.',
  }),
  transactionId: Type.Optional(TransactionId),
  slice: Type.Optional(Text),
  detail: Type.Optional(Text),
});
type Break = Static<typeof BreakSchema>;

const VerifiedSchema = Type.Object({
  ok: Type.Boolean(),
  days: Count,
  rows: Count,
  breaks: Type.Array(BreakSchema),
});
type Verified = Static<typeof VerifiedSchema>;

type Stored = ClosingRow & { readonly hash: Buffer };

/** The entry of a closing in the audit, with the end of the chain before it. */
type Audited = {
  readonly day: string;
  readonly hash: string;
  readonly before: bigint;
  readonly previous_hash: Buffer;
};

/**
 * Computes closed days again, from the rows up to the chain of closings, and reports everything that has
 * changed since the close. Each day is a transaction of its own, since closed days do not change. The entries
 * of the audit that recorded the closings are proved up to the sealed end of the chain.
 *
 * Without an interval, all closed days are verified. If the last such run was interrupted, it continues where
 * that one stopped.
 * @param interval days from (inclusive) and to (exclusive), or the number of the last closed days
 */
export async function verifyBooks(
  service: Pick<Service, 'db' | 'keys' | 'clock'>,
  interval: {
    readonly from?: string | undefined;
    readonly to?: string | undefined;
    readonly lastDays?: number | undefined;
  } = {},
): Promise<Verified> {
  const { db, clock } = service;
  const { to = null, lastDays } = interval;
  const closings = await db.query<Stored>(listClosings(null, to));
  const from = lastDays === undefined ? interval.from : closings.slice(-lastDays)[0]?.day;
  const run = from === undefined && to === null ? await beginRun(service) : undefined;
  const known = new Map((await db.query<Audited>(listAuditedClosings())).map((each) => [each.day, each]));
  const breaks: Break[] = [];
  let days = 0;
  let rows = 0;
  let first: Stored | undefined;
  for (const [at, closing] of closings.entries()) {
    const last = closings[at - 1];
    breaks.push(...verifyLink(closing, last, known));
    if ((from !== undefined && closing.day < from) || (run?.after && closing.day <= run.after)) continue;
    first ??= closing;
    days++;
    rows += Number(closing.rows);
    const isNewest = to === null && at === closings.length - 1;
    breaks.push(...(await inSnapshot(db, (tx) => verifyDay(tx, closing, last, isNewest))));
    if (run) await db.query(setVerified(run.id, closing.day, breaks.length, null));
  }
  const found = new Set(closings.map(({ day }) => day));
  for (const day of known.keys())
    if (!found.has(day) && (to === null || day < to))
      breaks.push({ day, change: 'audit', detail: 'the closing was removed' });
  breaks.push(...(await verifyEntries(service, from === undefined ? undefined : first, known)));
  if (run) await db.query(setVerified(run.id, null, breaks.length, clock()));
  return { ok: breaks.length === 0, days, rows, breaks };
}

/** Continues the last run over all days if it was interrupted, or begins one. */
async function beginRun({
  db,
  clock,
}: Pick<Service, 'db' | 'clock'>): Promise<{ id: number; after: string | null }> {
  const [interrupted] = await db.query<{ id: number; verified_to: string | null }>(findInterrupted());
  if (interrupted) return { id: interrupted.id, after: interrupted.verified_to };
  const [run] = await db.query<{ id: number }>(insertVerification(clock()));
  return { id: run?.id ?? 0, after: null };
}

function inSnapshot<T>(db: Database, read: (tx: Queries) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    return read(tx);
  }, 'repeatable read');
}

/**
 * Proves the entries of the audit up to the sealed end.
 * @param first the day from whose closing on they are proved; undefined: all of them
 */
async function verifyEntries(
  service: Pick<Service, 'db' | 'keys'>,
  first: Stored | undefined,
  known: ReadonlyMap<string, Audited>,
): Promise<Break[]> {
  const entry = first && known.get(first.day);
  const after = entry && { sequence: entry.before, hash: entry.previous_hash };
  const { broken } = await verifyAudit(service, null, after);
  if (!broken) return [];
  const { sequence, problem } = broken;
  const detail = sequence === null ? problem : `entry ${sequence}: ${problem}`;
  return [{ day: first?.day ?? [...known.keys()].at(-1) ?? '', change: 'audit', detail }];
}

/** Compares a closing with the one before it, its own hash, and the audit. */
function verifyLink(closing: Stored, last: Stored | undefined, known: ReadonlyMap<string, Audited>): Break[] {
  const { day } = closing;
  const breaks: Break[] = [];
  if (!closing.previous_hash.equals(last?.hash ?? GENESIS) || (last && !isNext(last, closing)))
    breaks.push({ day, change: 'chain', detail: 'it does not follow the closing before it' });
  if (!hashOfClosing(closing).equals(closing.hash))
    breaks.push({ day, change: 'closing', detail: 'its hash is not that of its columns' });
  if (known.get(day)?.hash !== closing.hash.toString('hex'))
    breaks.push({ day, change: 'audit', detail: 'the audit recorded another hash' });
  return breaks;
}

const isNext = (last: Stored, closing: Stored) => last.ends_at.getTime() === closing.starts_at.getTime();

/** @param isNewest the ages of the vouchers are known of the newest closed day only */
async function verifyDay(
  tx: Queries,
  closing: Stored,
  last: Stored | undefined,
  isNewest: boolean,
): Promise<Break[]> {
  const { day, starts_at, ends_at } = closing;
  const breaks: Break[] = [];
  const [bounds] = await tx.query<Pick<Stored, 'starts_at' | 'ends_at' | 'zone'>>(findDay(day));
  if (!isDeepStrictEqual(bounds, { starts_at, ends_at, zone: closing.zone }))
    breaks.push({ day, change: 'totals', detail: 'the day begins or ends at another time' });
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
    ages: string;
    checks: { name: string; differing: object[] }[];
  };
  const { aggregates, ages, checks } = JSON.parse(closing.totals) as Totals;
  const hashes = await readHashes(tx, day);
  for (const what of new Set([...Object.keys(aggregates), ...Object.keys(hashes)]))
    if (aggregates[what] !== hashes[what])
      breaks.push({ day, change: 'totals', detail: `${what} are not those that were closed` });
  if (isNewest && ages !== (await readAges(tx, closing)))
    breaks.push({ day, change: 'totals', detail: 'ages are not those that were closed' });
  for (const { name, differing } of checks)
    if (differing.length > 0) breaks.push({ day, change: 'check', detail: name });
  return breaks;
}

export const verify = reading({
  name: 'books.verify',
  summary: 'Compute closed days again, and name every row or closing that was changed',
  method: 'GET',
  path: '/books/verify',
  command: 'books verify',
  description:
    'Without an interval, it verifies all closed days, and continues an earlier request that was interrupted.',
  input: Input({
    from: Type.Optional(Day),
    to: Type.Optional(Day),
    lastDays: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description: 'Only this number of the last closed days.',
      }),
    ),
  }),
  output: VerifiedSchema,
  outcome: 'ok',
  roles: VERIFY,
  async run({ service }, { lastDays, ...input }) {
    const interval = checkInterval(input);
    if (lastDays !== undefined && (interval.from ?? interval.to) !== undefined)
      throw invalid('lastDays', 'exclusive', 'cannot be combined with from or to');
    return verifyBooks(service, { ...interval, lastDays });
  },
});
