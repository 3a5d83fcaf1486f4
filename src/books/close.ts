import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { type Actor, isSharded, type Operator, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { checkStamp } from '../ledger/queries.ts';
import { alone, changing } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { checkDay, Day, Input, Reason, Text, Time, Word } from '../schema.ts';
import {
  allowLongWork,
  type ClosingRow,
  findLastClosing,
  findRecountStart,
  hashAges,
  hashAggregates,
  insertAging,
  insertBalances,
  insertClosing,
  insertLateRows,
  insertMovements,
  listBookedLate,
  listSlices,
  lockKeeping,
  seal,
  sumDay,
  summarizeSeals,
} from './close.queries.ts';
import { findOpenDay, findUnswept, lockBooks, openDays } from './days.queries.ts';
import { type BookDay, type Books, getBooks, SLICE_MS } from './days.ts';
import { Pieces } from './pieces.ts';
import { GENESIS, hashOfClosing, passMark, sealDue, VERSION } from './seal.ts';
import { sweepExpired } from './sweep.ts';
import { type ClosedDay, dayChecks, FLOATS_CHECK, lockFloats } from './verify.queries.ts';
import {
  type DayRow,
  explainWait,
  PASS_STEP_MS,
  PASS_WAIT_MS,
  VOUCHER_IN_USE,
  WAIT_CAUSES,
  type Waiting,
  waitingFor,
} from './wait.ts';

/** Each close counts the rows of this many closed days again. */
const RECOUNTED_DAYS = 3;

type Closed = { readonly day: string; readonly hash: string; readonly failed: readonly string[] };
export type Closing = { readonly closed: readonly Closed[]; readonly waiting: Waiting | null };

/**
 * Books what belongs to a day when it closes, such as commission. The rows are stamped within the day, before
 * its last slice is sealed. A second call books nothing.
 */
export type DayEnd = (operator: Operator, tx: Queries, day: BookDay) => Promise<void>;

type Options = {
  /** The last day to close. Without it, all days that are due are closed. */
  readonly until?: string | undefined;
  readonly stopping?: () => boolean;
  readonly dayEnds?: readonly DayEnd[];
};

/**
 * Closes the days that are due, in order. For each day, it first books what has expired, and seals the slices
 * that are due, with rests while tills are busy. It then books late rows and commission. One transaction
 * seals the last slice, stores the totals, runs the checks, writes the closing and adds an entry to the
 * audit.
 * @returns the days that were closed, and the reason why the next day was not
 */
export async function closeDays(operator: Operator, options: Options = {}): Promise<Closing> {
  const { service } = operator;
  const { until, stopping = () => false, dayEnds = [] } = options;
  const closed: Closed[] = [];
  const pieces = new Pieces(service.db, stopping);
  // The clocks agree, and were not set back.
  await service.db.query(checkStamp(service.clock()));
  await service.db.query(openDays());
  for (;;) {
    const [next] = await service.db.query<DayRow>(findOpenDay());
    if (!next || stopping() || (until !== undefined && next.day > until)) return { closed, waiting: null };
    await sweepExpired(service, stopping);
    await passMark(service);
    const waiting = await explainWait(service, next);
    await sealDue(service, pieces);
    if (waiting !== null) return { closed, waiting };
    const lateSlices = await findLateSlices(service, pieces, next);
    if (stopping()) return { closed, waiting: null };
    await endDay(operator, next, lateSlices, dayEnds);
    const done = await closeDay(operator, next);
    if (!('hash' in done)) return { closed, waiting: done };
    closed.push(done);
  }
}

/** Lists the sealed slices of the last closed days and of the next one to which rows were added later. */
async function findLateSlices(service: Service, pieces: Pieces, { starts_at }: DayRow): Promise<Date[]> {
  const { sealed_until } = await getBooks(service.db);
  const [start] = await service.db.query<{ starts_at: Date | null }>(findRecountStart(RECOUNTED_DAYS));
  const found: Date[] = [];
  type Slice = { slice_at: Date; rows: bigint; is_late: boolean };
  await pieces.over(start?.starts_at ?? starts_at, sealed_until ?? starts_at, (from, to) =>
    service.db.transaction(async (tx) => {
      await tx.query(allowLongWork);
      const slices = await tx.query<Slice>(listSlices(from, to));
      found.push(...slices.filter(({ is_late }) => is_late).map(({ slice_at }) => slice_at));
      return slices.reduce((sum, { rows }) => sum + Number(rows), 0);
    }, 'read committed'),
  );
  return found;
}

/**
 * Books what belongs to the end of a day: the rows that were written into slices after they were sealed, then
 * the commission of all rows of the day. This is a transaction of its own: over shards, the close could not
 * read what it has booked itself. A second call books nothing.
 */
function endDay(
  operator: Operator,
  row: DayRow,
  lateSlices: readonly Date[],
  dayEnds: readonly DayEnd[],
): Promise<void> {
  return operator.service.db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    await tx.query(lockBooks());
    const [next] = await tx.query<DayRow>(findOpenDay());
    if (next?.day !== row.day) return;
    const bookedIn = new Date(row.ends_at.getTime() - SLICE_MS);
    for (const slice of lateSlices) await tx.query(insertLateRows(slice, bookedIn, row.day));
    for (const book of dayEnds) await book(operator, tx, toDay(row));
  }, 'read committed');
}

const toDay = ({ day, starts_at, ends_at, zone }: DayRow): BookDay => ({
  day,
  startsAt: starts_at,
  endsAt: ends_at,
  zone,
});

/** Closes a day in one transaction, or returns why it cannot be closed. */
function closeDay(operator: Operator, row: DayRow): Promise<Closed | Waiting> {
  const { service } = operator;
  const { day, starts_at, ends_at, zone } = row;
  return service.db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    const [books] = await tx.query<Books>(lockBooks());
    if (!books) throw new Error('the books have no row');
    const [next] = await tx.query<DayRow>(findOpenDay());
    if (next?.day !== day) return waitingFor(row, books, 'other-close', `another process closes ${day}`);
    const [unswept] = await tx.query<{ found: boolean }>(findUnswept(ends_at));
    if (unswept?.found) return waitingFor(row, books, 'voucher-in-use', VOUCHER_IN_USE);
    await tx.query(seal(ends_at));
    const [last] = await tx.query<{ day: string; hash: Buffer }>(findLastClosing());
    await tx.query(insertMovements(day, starts_at, ends_at));
    await tx.query(insertBalances(day, last?.day ?? null));
    await tx.query(insertAging(day, zone));
    const late = (await tx.query<{ id: string }>(listBookedLate(day))).map(({ id }) => id);
    const checks = await check(service, tx, { day, from: starts_at, to: ends_at });
    const failed = [...checks.filter(({ differing }) => differing.length > 0).map(({ name }) => name)];
    const closing = await summarize(service, tx, row, last, { checks, late });
    const hash = hashOfClosing(closing);
    await tx.query(insertClosing(closing, hash));
    const after = { hash: hash.toString('hex'), rows: closing.rows, failed, lateRows: late };
    await audit(tx, operator, { action: 'books.close', subject: `day ${day}`, after });
    if (failed.length > 0 || late.length > 0)
      service.log.error({ day, failed, late }, 'a day was closed whose books do not agree');
    return { day, hash: hash.toString('hex'), failed };
  }, 'read committed');
}

type Checked = { readonly name: string; readonly differing: readonly object[] };

async function check(service: Service, tx: Queries, day: ClosedDay): Promise<Checked[]> {
  const done: Checked[] = [];
  for (const [name, statement] of Object.entries(dayChecks)) {
    const look = async () => {
      const [row] = await tx.query<{ differing: object[] | null }>(statement(day));
      return row?.differing ?? [];
    };
    const differing = await look();
    const isDoubtful = differing.length > 0 && name === FLOATS_CHECK && isSharded(service);
    done.push({ name, differing: isDoubtful ? await lookAgain(tx, look) : differing });
  }
  return done;
}

/**
 * Repeats a check that found a difference, while nothing else can be booked on a float. Over shards, a float
 * and its journal rows are read at two moments, so a difference may not be real. A booking that has just been
 * committed may become visible on its shard only a moment later.
 */
async function lookAgain(tx: Queries, look: () => Promise<object[]>): Promise<object[]> {
  await tx.query(lockFloats());
  for (const until = performance.now() + PASS_WAIT_MS; ; await sleep(PASS_STEP_MS)) {
    const differing = await look();
    if (differing.length === 0 || performance.now() > until) return differing;
  }
}

async function summarize(
  { clock }: Service,
  tx: Queries,
  day: DayRow,
  last: { day: string; hash: Buffer } | undefined,
  { checks, late }: { checks: readonly Checked[]; late: readonly string[] },
): Promise<ClosingRow> {
  type Sealed = { rows: bigint; rows_hash: Buffer; first_id: string | null; last_id: string | null };
  const [sealed] = await tx.query<Sealed>(summarizeSeals(day.starts_at, day.ends_at));
  if (!sealed) throw new Error('the seals of a day have no sum');
  const balances = await tx.query<Record<string, string>>(sumDay(day.day, last?.day ?? null));
  return {
    ...day,
    ...sealed,
    first_id: sealed.first_id && toUuid(sealed.first_id),
    last_id: sealed.last_id && toUuid(sealed.last_id),
    totals: JSON.stringify({
      balances,
      aggregates: await readHashes(tx, day.day),
      ages: await readAges(tx, day),
      checks,
      late,
    }),
    version: VERSION,
    closed_at: clock(),
    previous_hash: last?.hash ?? GENESIS,
  };
}

/** Returns the hashes of a day's aggregates, by kind. */
export async function readHashes(tx: Queries, day: string): Promise<Readonly<Record<string, string>>> {
  const rows = await tx.query<{ what: string; hash: string }>(hashAggregates(day));
  return Object.fromEntries(rows.map(({ what, hash }) => [what, hash]));
}

/** Returns the hash of the vouchers' ages at the end of the last day that is closed or being closed. */
export async function readAges(tx: Queries, { ends_at }: Pick<DayRow, 'ends_at'>): Promise<string> {
  const [row] = await tx.query<{ hash: string }>(hashAges(ends_at));
  if (!row) throw new Error('the ages of the vouchers have no hash');
  return row.hash;
}

function toUuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The actor of closes that the schedule started. */
const KEEPER: Actor = {
  kind: 'service',
  id: null,
  name: 'scrip',
  origin: 'background work',
  requestId: null,
  reason: null,
};

/**
 * Books what has expired, seals slices, and closes the days that are due. One process does this at a time,
 * and any other does nothing. A transaction that does nothing else holds the lock, so that it holds up no
 * cleaning of tables.
 */
export async function keepBooks(
  service: Service,
  dayEnds: readonly DayEnd[],
  stopping: () => boolean,
): Promise<void> {
  const operator: Operator = { service, actor: KEEPER };
  const done = await service.db.transaction(async (tx) => {
    const [lock] = await tx.query<{ is_free: boolean }>(lockKeeping());
    return lock?.is_free ? closeDays(operator, { dayEnds, stopping }) : undefined;
  }, 'read committed');
  if (!done) return;
  const { closed, waiting } = done;
  for (const { day, hash } of closed) service.log.info({ day, hash }, 'a day was closed');
  if (waiting) service.log.debug(waiting, 'the next day is not closed yet');
}

const WaitingSchema = Type.Object({
  day: Day,
  cause: Word(WAIT_CAUSES),
  reason: Type.String({ description: 'The cause as a sentence, for people.' }),
  endsAt: Time,
  dueAt: Type.Unsafe<Date>({ ...Time, description: 'When the time after its end is over.' }),
  prepared: Type.Array(Type.Object({ name: Text, since: Time }), {
    description: 'Prepared transactions, which somebody has to end.',
  }),
});

/** @param dayEnds what belongs to a day when it closes */
export const closing = (dayEnds: readonly DayEnd[]) =>
  changing({
    name: 'books.close',
    summary: 'Close the days that are due, in order, and say why the next one is not',
    method: 'POST',
    path: '/books/close',
    command: 'books close',
    input: Input({ day: Type.Optional(Day), reason: Reason }),
    output: Type.Object({
      closed: Type.Array(Type.Object({ day: Day, hash: Text, failed: Type.Array(Text) })),
      waiting: Type.Unsafe<Waiting | null>({ ...WaitingSchema, type: ['object', 'null'] }),
    }),
    roles: MONEY,
    approval: alone('It books what the rules say, and nothing that the caller chooses.'),
    // Each day is closed in a separate transaction.
    effect: 'outside',
    async run(caller, { day }) {
      checkDay(day, 'day');
      const { closed, waiting } = await closeDays(caller, { until: day, dayEnds });
      return { closed: closed.map((each) => ({ ...each, failed: [...each.failed] })), waiting };
    },
  });
