import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { byService, type Operator, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { checkStamp } from '../ledger/journal.ts';
import { alone, changing } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { checkDay, Day, Text, Time, Word } from '../schema.ts';
import { enqueueEvent, OPERATOR } from '../webhooks/outbox.ts';
import { dayChecks, FLOATS_CHECK } from './day-checks.ts';
import {
  type BookDay,
  bookedBetween,
  EFFECTS,
  findOpenDay,
  getBooks,
  hasUnswept,
  inSlice,
  lockBooks,
  openDays,
  SLICE_MS,
} from './days.ts';
import { leafHash } from './merkle.ts';
import { Pieces } from './pieces.ts';
import {
  allowLongWork,
  type ClosingRow,
  GENESIS,
  passMark,
  seal,
  sealDue,
  sumOfSlices,
  textOfClosing,
  VERSION,
} from './seal.ts';
import { sweepExpired } from './sweep.ts';
import {
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
  await openDays(service.db);
  for (;;) {
    const next = await findOpenDay(service.db);
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
async function findLateSlices(service: Service, pieces: Pieces, { startsAt }: BookDay): Promise<Date[]> {
  const { sealedUntil } = await getBooks(service.db);
  // When the oldest of the last closed days began. A close counts the rows from then on again.
  const [start] = await service.db.query<{ startsAt: Date | null }>(sql`
select min(c.starts_at) as "startsAt"
from (select starts_at from book_closings order by day desc limit ${RECOUNTED_DAYS}) c`);
  const found: Date[] = [];
  type Slice = { startsAt: Date; rows: bigint; isLate: boolean };
  await pieces.over(start?.startsAt ?? startsAt, sealedUntil ?? startsAt, (from, to) =>
    service.db.transaction(async (tx) => {
      await tx.query(allowLongWork);
      // The slices of an interval with their rows, and whether these are more than were sealed.
      const slices = await tx.query<Slice>(sql`
with counted as (
  select r.slice_at, count(*) as rows from book_rows r
  where ${bookedBetween(from, to)}
  group by r.slice_at
)
select c.slice_at as "startsAt", c.rows, c.rows > coalesce(b.rows, 0) as "isLate"
from counted c left join book_seals b on b.starts_at = c.slice_at order by c.slice_at`);
      found.push(...slices.filter(({ isLate }) => isLate).map((slice) => slice.startsAt));
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
  row: BookDay,
  lateSlices: readonly Date[],
  dayEnds: readonly DayEnd[],
): Promise<void> {
  return operator.service.db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    await lockBooks(tx);
    const next = await findOpenDay(tx);
    if (next?.day !== row.day) return;
    const bookedIn = new Date(row.endsAt.getTime() - SLICE_MS);
    // Books the rows that a slice's listing does not name as late rows of another slice.
    for (const slice of lateSlices)
      await tx.query(sql`
insert into book_late_rows (id, occurred_at, slice_at, found_in)
select r.id, r.occurred_at, ${bookedIn}, ${row.day}::date
from book_rows r
where ${inSlice(slice)}
  and uuid_send(r.id) not in (
    select substring(b.listing from (20 * i.at + 1)::int for 16)
    from book_seals b, generate_series(0, b.rows - 1) as i (at) where b.starts_at = ${slice}
  )
returning id`);
    for (const book of dayEnds) await book(operator, tx, row);
  }, 'read committed');
}

/** Closes a day in one transaction, or returns why it cannot be closed. */
function closeDay(operator: Operator, row: BookDay): Promise<Closed | Waiting> {
  const { service } = operator;
  const { day, startsAt, endsAt, zone } = row;
  return service.db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    const books = await lockBooks(tx);
    const next = await findOpenDay(tx);
    if (next?.day !== day) return waitingFor(row, books, 'other-close', `another process closes ${day}`);
    if (await hasUnswept(tx, endsAt)) return waitingFor(row, books, 'voucher-in-use', VOUCHER_IN_USE);
    await tx.query(seal(endsAt));
    const [last] = await tx.query<{ day: string; hash: Buffer }>(
      sql`select day::text as day, ends_at, hash from book_closings order by day desc limit 1`,
    );
    await tx.query(sql`
insert into book_movements (day, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id,
  rows, amount_minor)
select ${day}::date, s.currency, s.kind, s.debit_kind, s.credit_kind, s.merchant_id, s.issuer_id,
  s.product_id, sum(s.rows), sum(s.amount_minor)
from book_slices s where s.starts_at >= ${startsAt} and s.starts_at < ${endsAt}
group by 2, 3, 4, 5, 6, 7, 8`);
    // Stores the balances at the end of a day: those of the day before, plus the movements of the day.
    await tx.query(sql`
insert into book_balances (day, currency, account_kind, merchant_id, issuer_id, product_id, balance_minor)
select ${day}::date, p.currency, p.account_kind, p.merchant_id, p.issuer_id, p.product_id,
  sum(p.balance_minor)
from (
  select currency, account_kind, merchant_id, issuer_id, product_id, balance_minor
  from book_balances where day = ${last?.day ?? null}::date
  union all
  select m.currency, e.account_kind, e.owner_id, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
  from book_movements m ${EFFECTS}
  where m.day = ${day}::date
) p
group by 2, 3, 4, 5, 6 having sum(p.balance_minor) <> 0`);
    // Counts and sums the vouchers with a balance at the end of a day by their ages: by the days until the
    // day on which they expire, by the days since the day of their last use, and by the month in which
    // they expire. Days and months are those of the day's time zone. Call it when the day is sealed.
    await tx.query(sql`
insert into book_aging (day, currency, product_id, issuer_id, basis, lower_bound, vouchers, amount_minor)
select ${day}::date, h.currency, h.product_id, h.issuer_id, b.basis,
  b.bounds[width_bucket(greatest(b.age, 0), b.bounds)], sum(h.vouchers), sum(h.amount_minor)
from (
  select a.*, case a.basis
      when 'expires' then (a.at at time zone ${zone})::date
      else coalesce(
        (select d.day from book_days d where d.starts_at = a.at),
        (select (a.at at time zone d.zone)::date from book_days d order by d.day limit 1)
      )
    end as on_day
  from book_ages a
) h
cross join lateral (values
  (h.basis, case h.basis when 'expires' then h.on_day - ${day}::date else ${day}::date - h.on_day end,
    array[0, 31, 61, 91, 181, 366]),
  (case h.basis when 'expires' then 'month' end,
    (extract(year from h.on_day) * 12 + extract(month from h.on_day)
      - extract(year from ${day}::date) * 12 - extract(month from ${day}::date))::integer,
    array[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
) as b (basis, age, bounds)
where b.basis is not null
group by 2, 3, 4, 5, 6 having sum(h.vouchers) <> 0 or sum(h.amount_minor) <> 0`);
    // The late rows that were booked on a day.
    const lateRows = await tx.query<{ id: string }>(sql`
select id from book_late_rows where found_in = ${day}::date order by id`);
    const late = lateRows.map(({ id }) => id);
    const checks = await check(service, tx, row);
    const failed = checks.filter(({ differing }) => differing.length > 0).map(({ name }) => name);
    const closing = await summarize(service, tx, row, last, { checks, late });
    const hash = leafHash(textOfClosing(closing));
    await tx.query(sql`
insert into book_closings (day, starts_at, ends_at, zone, rows, first_id, last_id, root, totals, version,
  closed_at, previous_hash, hash)
values (${closing.day}::date, ${closing.startsAt}, ${closing.endsAt}, ${closing.zone}, ${closing.rows},
  ${closing.firstId}::uuid, ${closing.lastId}::uuid, ${closing.root}, ${closing.totals},
  ${closing.version}, ${closing.closedAt},
  ${closing.previousHash}, ${hash})`);
    const after = { hash: hash.toString('hex'), rows: closing.rows, failed, lateRows: late };
    const { closedAt: now } = closing;
    const event = { type: 'day.closed', eventId: newId(now), subjectId: null } as const;
    await enqueueEvent(tx, { ...event, merchantId: OPERATOR, data: { day, hash: after.hash, failed }, now });
    await audit(tx, operator, { action: 'books.close', subject: `day ${day}`, after });
    if (failed.length > 0 || late.length > 0)
      service.log.error({ day, failed, late }, 'a day was closed whose books do not agree');
    return { day, hash: hash.toString('hex'), failed };
  }, 'read committed');
}

type Checked = { readonly name: string; readonly differing: readonly object[] };

async function check(service: Service, tx: Queries, day: BookDay): Promise<Checked[]> {
  const done: Checked[] = [];
  for (const [name, statement] of Object.entries(dayChecks)) {
    const look = async () => {
      const [row] = await tx.query<{ differing: object[] | null }>(statement(day));
      return row?.differing ?? [];
    };
    const differing = await look();
    const isDoubtful = differing.length > 0 && name === FLOATS_CHECK && service.buckets.isSharded;
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
  // Blocks every other booking on a float until the transaction ends.
  await tx.query(sql`select account_id from floats order by account_id for update`);
  for (const until = performance.now() + PASS_WAIT_MS; ; await sleep(PASS_STEP_MS)) {
    const differing = await look();
    if (differing.length === 0 || performance.now() > until) return differing;
  }
}

async function summarize(
  { clock }: Service,
  tx: Queries,
  day: BookDay,
  last: { day: string; hash: Buffer } | undefined,
  { checks, late }: { checks: readonly Checked[]; late: readonly string[] },
): Promise<ClosingRow> {
  const { startsAt, endsAt } = day;
  type Ends = Pick<ClosingRow, 'firstId' | 'lastId'>;
  const ofDay = sql`from book_seals where starts_at >= ${startsAt} and starts_at < ${endsAt} order by starts_at`;
  const [ends] = (await tx.query<Ends>(sql`
select
  (select encode(substring(listing from 1 for 16), 'hex')::uuid ${ofDay} limit 1) as "firstId",
  (select encode(substring(listing from (20 * rows - 19)::int for 16), 'hex')::uuid ${ofDay} desc limit 1)
    as "lastId"`)) as [Ends];
  // The trial balance of a closed day, by currency and account kind.
  const balances = await tx.query<Record<string, string>>(sql`
select p.currency, p.account_kind, sum(p.opening)::text as opening, sum(p.debits)::text as debits,
  sum(p.credits)::text as credits, sum(p.closing)::text as closing
from (
  select currency, account_kind, balance_minor as opening, 0 as debits, 0 as credits, 0 as closing
  from book_balances where day = ${last?.day ?? null}::date
  union all
  select currency, account_kind, 0, 0, 0, balance_minor from book_balances where day = ${day.day}::date
  union all
  select m.currency, e.account_kind, 0, e.debit_minor, e.credit_minor, 0
  from book_movements m ${EFFECTS}
  where m.day = ${day.day}::date
) p
group by 1, 2 order by 1, 2`);
  return {
    ...day,
    ...(await sumOfSlices(tx, day)),
    ...ends,
    totals: JSON.stringify({
      balances,
      aggregates: await readHashes(tx, day.day),
      ages: await readAges(tx, day),
      checks,
      late,
    }),
    version: VERSION,
    closedAt: clock(),
    previousHash: last?.hash ?? GENESIS,
  };
}

/** Returns the hashes of a day's aggregates, by kind. */
export async function readHashes(tx: Queries, day: string): Promise<Readonly<Record<string, string>>> {
  // A SHA-256 hash for each kind of aggregate of a day, and for the terms of the batches that
  // were accepted on it, over the rows in the order of their text.
  const rows = await tx.query<{ what: string; hash: string }>(sql`
select a.what, encode(
  sha256(convert_to(string_agg(a.line, E'\n' order by a.line collate "C"), 'UTF8')), 'hex') as hash
from (
  select 'balances' as what,
    concat_ws('|', currency, account_kind, merchant_id, issuer_id, product_id, balance_minor) as line
  from book_balances where day = ${day}::date
  union all
  select 'movements', concat_ws('|', currency, kind, debit_kind, credit_kind, merchant_id, issuer_id,
    product_id, rows, amount_minor)
  from book_movements where day = ${day}::date
  union all
  select 'cohorts', concat_ws('|', currency, product_id, issuer_id, expiry_policy,
    to_char(issue_month, 'YYYY-MM'), kind, is_credit, rows, amount_minor)
  from book_cohorts where day = ${day}::date
  union all
  select 'reversals', concat_ws('|', to_char(original_day, 'YYYY-MM-DD'), currency, merchant_id, product_id,
    rows, amount_minor, again_minor)
  from book_reversals where day = ${day}::date
  union all
  select 'batches', (to_jsonb(b) - '{produced,status,progressed_at,ended_at,failures,failing_since,failure,
    voided_at,swept_to,swept_at,lapsed}'::text[])::text
  from book_days d join batches b on b.accepted_at >= d.starts_at and b.accepted_at < d.ends_at
  where d.day = ${day}::date
  union all
  select 'aging',
    concat_ws('|', currency, product_id, issuer_id, basis, lower_bound, vouchers, amount_minor)
  from book_aging where day = ${day}::date
) a
group by a.what order by a.what`);
  return Object.fromEntries(rows.map(({ what, hash }) => [what, hash]));
}

/** Returns the hash of the vouchers' ages at the end of the last day that is closed or being closed. */
export async function readAges(tx: Queries, { endsAt }: Pick<BookDay, 'endsAt'>): Promise<string> {
  // The SHA-256 hash over the ages at the end of the last closed day, or of the day that is
  // being closed: the present ones less the changes since.
  const [row] = (await tx.query<{ hash: string }>(sql`
select encode(
  sha256(convert_to(coalesce(string_agg(s.line, E'\n' order by s.line collate "C"), ''), 'UTF8')), 'hex') as hash
from (
  select concat_ws('|', a.currency, a.product_id, a.issuer_id, a.basis, extract(epoch from a.at)::bigint,
    sum(a.vouchers), sum(a.amount_minor)) as line
  from (
    select * from book_ages
    union all
    select m.currency, m.product_id, m.issuer_id, m.basis, age_of(m.basis, m.at), -m.vouchers, -m.amount_minor
    from books b cross join lateral moved_ages(${endsAt}, b.sealed_until) m
    where b.sealed_until > ${endsAt}
  ) a
  group by a.currency, a.product_id, a.issuer_id, a.basis, a.at
  having sum(a.vouchers) <> 0 or sum(a.amount_minor) <> 0
) s`)) as [{ hash: string }];
  return row.hash;
}

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
  const operator: Operator = { service, actor: byService('background work', null) };
  const done = await service.db.transaction(async (tx) => {
    // Whether this transaction may keep the books until it ends.
    const [lock] = await tx.query<{ isFree: boolean }>(sql`
select pg_try_advisory_xact_lock(7311990014) as "isFree",
  set_config('idle_in_transaction_session_timeout', '0', true)`);
    return lock?.isFree ? closeDays(operator, { dayEnds, stopping }) : undefined;
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
    title: 'Close days',
    summary: 'Close the days that are due, in order, and say why the next one is not',
    path: '/books/close',
    input: {
      day: Type.Optional({ ...Day, description: 'The last day to close; left out: every day that is due.' }),
    },
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
