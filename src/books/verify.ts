import { isDeepStrictEqual } from 'node:util';
import Type, { type Static } from 'typebox';
import { verifyAudit } from '../audit/verify.ts';
import type { Service } from '../context.ts';
import type { Database, Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { reading, tableOf } from '../operation.ts';
import { VERIFY } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Count, Day, Text, TransactionId } from '../schema.ts';
import { readAges, readHashes } from './close.ts';
import { type BookDay, bookedBetween, checkInterval, EFFECTS, INTERVAL, inSlice } from './days.ts';
import { leafHash } from './merkle.ts';
import { allowLongWork, type Closing, GENESIS, listClosings, sumOfSlices, textOfClosing } from './seal.ts';
import { rootOfSettled, type Settled } from './settled.ts';

/** Records how far a run came. @param day null: no day was verified */
function setVerified(id: number, day: string | null, breaks: number, endedAt: Date | null): Sql {
  return sql`
update book_verifications
set verified_to = coalesce(${day}::date, verified_to), breaks = ${breaks}, ended_at = ${endedAt}
where id = ${id}`;
}

/** Something that has changed since the close. */
const BreakSchema = Type.Object({
  day: Day,
  change: Type.String({
    description:
      '`altered`, `removed`, `added`: a row of the journal. `late`: a row that was written after its slice was ' +
      'sealed, and booked on a later day. `aggregate`, `seal`, `totals`: a value computed from the rows. ' +
      '`closing`, `chain`, `audit`: the closing itself. `check`: a check that failed at the close. ' +
      '`settlement`: one that ends on this day, and has the root of other rows. ' +
      '`published`: a closing that differs from the published one.',
  }),
  transactionId: Type.Optional(TransactionId),
  slice: Type.Optional(Text),
  detail: Type.Optional(Text),
});
export type Break = Static<typeof BreakSchema>;

const VerifiedSchema = Type.Object({
  ok: Type.Boolean(),
  days: Count,
  rows: Count,
  breaks: Type.Array(BreakSchema),
});
type Verified = Static<typeof VerifiedSchema>;

/** The entry of a closing in the audit, with the end of the chain before it. */
type Audited = {
  readonly day: string;
  readonly hash: string;
  readonly before: bigint;
  readonly previousHash: Buffer;
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
  const closings = await db.query<Closing>(listClosings(null, to));
  const from = lastDays === undefined ? interval.from : closings.slice(-lastDays)[0]?.day;
  const run = from === undefined && to === null ? await beginRun(service) : undefined;
  // The closings that the audit recorded, each with the end of the chain before its entry.
  const known = new Map(
    (
      await db.query<Audited>(sql`
select substr(subject, 5) as day, after::json ->> 'hash' as hash, sequence - 1 as before,
  previous_hash as "previousHash"
from audit where action = 'books.close' order by sequence`)
    ).map((each) => [each.day, each]),
  );
  const breaks: Break[] = [];
  let days = 0;
  let rows = 0;
  let first: Closing | undefined;
  for (const [at, closing] of closings.entries()) {
    const last = closings[at - 1];
    breaks.push(...verifyLink(closing, last, known));
    if ((from !== undefined && closing.day < from) || (run?.after && closing.day <= run.after)) continue;
    first ??= closing;
    days++;
    rows += Number(closing.rows);
    const isNewest = to === null && at === closings.length - 1;
    const found = await inSnapshot(db, (tx) => verifyDay(tx, closing, last, isNewest));
    breaks.push(...found);
    // Rows that differ are named above. Without any, a root that differs is itself what was changed.
    if (found.length === 0)
      breaks.push(...(await inSnapshot(db, (tx) => verifySettlements(tx, closing.day))));
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
  // A run over all closed days that was interrupted before it found anything.
  const [interrupted] = await db.query<{ id: number; after: string | null }>(sql`
select r.id, r.verified_to::text as after
from (select * from book_verifications order by id desc limit 1) r
where r.ended_at is null and r.breaks = 0`);
  if (interrupted) return interrupted;
  const [run] = await db.query<{ id: number }>(
    sql`insert into book_verifications (started_at) values (${clock()}) returning id`,
  );
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
  first: Closing | undefined,
  known: ReadonlyMap<string, Audited>,
): Promise<Break[]> {
  const entry = first && known.get(first.day);
  const after = entry && { sequence: entry.before, hash: entry.previousHash };
  const { broken } = await verifyAudit(service, null, after);
  if (!broken) return [];
  const { sequence, problem } = broken;
  const detail = sequence === null ? problem : `entry ${sequence}: ${problem}`;
  return [{ day: first?.day ?? [...known.keys()].at(-1) ?? '', change: 'audit', detail }];
}

/** Compares a closing with the one before it, its own hash, and the audit. */
function verifyLink(
  closing: Closing,
  last: Closing | undefined,
  known: ReadonlyMap<string, Audited>,
): Break[] {
  const { day } = closing;
  const breaks: Break[] = [];
  if (!closing.previousHash.equals(last?.hash ?? GENESIS) || (last && !isNext(last, closing)))
    breaks.push({ day, change: 'chain', detail: 'it does not follow the closing before it' });
  if (!leafHash(textOfClosing(closing)).equals(closing.hash))
    breaks.push({ day, change: 'closing', detail: 'its hash is not that of its columns' });
  if (known.get(day)?.hash !== closing.hash.toString('hex'))
    breaks.push({ day, change: 'audit', detail: 'the audit recorded another hash' });
  return breaks;
}

const isNext = (last: Closing, closing: Closing) => last.endsAt.getTime() === closing.startsAt.getTime();

/** @param isNewest the ages of the vouchers are known of the newest closed day only */
async function verifyDay(
  tx: Queries,
  closing: Closing,
  last: Closing | undefined,
  isNewest: boolean,
): Promise<Break[]> {
  const { day, startsAt, endsAt, zone } = closing;
  const breaks: Break[] = [];
  // The bounds of a day by which reports find it.
  const [bounds] = await tx.query<Omit<BookDay, 'day'>>(
    sql`
select starts_at as "startsAt", ends_at as "endsAt", zone from book_days where day = ${day}::date`,
  );
  if (!isDeepStrictEqual(bounds, { startsAt, endsAt, zone }))
    breaks.push({ day, change: 'totals', detail: 'the day begins or ends at another time' });
  const sealed = await sumOfSlices(tx, closing);
  if (sealed.rows !== closing.rows || !sealed.root.equals(closing.root))
    breaks.push({ day, change: 'seal', detail: 'the seals of the slices are not those that were closed' });
  // The slices of an interval whose rows differ from the sealed ones in number or hash.
  const slices = await tx.query<{ slice: Date }>(sql`
with found as (
  select r.slice_at, count(*) as rows,
    merkle_root(string_agg(r.leaf, ''::bytea order by r.occurred_at, r.id)) as root
  from book_rows r
  where ${bookedBetween(startsAt, endsAt)}
  group by r.slice_at
)
select coalesce(f.slice_at, b.starts_at) as slice
from found f
full join (
  select starts_at, rows, root from book_seals where starts_at >= ${startsAt} and starts_at < ${endsAt}
) b on b.starts_at = f.slice_at
where f.root is distinct from b.root or f.rows is distinct from b.rows
order by 1`);
  for (const { slice: at } of slices) {
    const slice = at.toISOString();
    // The rows of a slice that differ from its listing. A row that was moved to another time is
    // missing in one slice and added in another.
    const found = await tx.query<{ id: string; change: string }>(sql`
with listed as (
  select encode(substring(b.listing from (20 * i.at + 1)::int for 16), 'hex')::uuid as id,
    substring(b.listing from (20 * i.at + 17)::int for 4) as mark
  from book_seals b, generate_series(0, b.rows - 1) as i (at) where b.starts_at = ${at}
), found as (
  select r.id, substring(r.leaf from 1 for 4) as mark from book_rows r
  where ${inSlice(at)}
)
select coalesce(l.id, f.id) as id,
  case when f.id is null then 'removed' when l.id is null then 'added' else 'altered' end as change
from listed l full join found f on f.id = l.id
where f.mark is distinct from l.mark
order by 1 limit 1000`);
    for (const { id, change } of found) breaks.push({ day, change, transactionId: id, slice });
    if (found.length === 0) breaks.push({ day, change: 'seal', slice });
  }
  if (slices.length === 0) {
    type Sum = { slice_at: Date; currency: string; kind: string };
    // Differences between the slices of an interval and the rows themselves.
    for (const { slice_at, currency, kind } of await tx.query<Sum>(sql`
select slice_at, currency, kind::text as kind
from slice_movements(${startsAt}, ${endsAt}) m
full join (
  select starts_at as slice_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id,
    rows, amount_minor
  from book_slices where starts_at >= ${startsAt} and starts_at < ${endsAt}
) s using (slice_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
where m.rows is distinct from s.rows or m.amount_minor is distinct from s.amount_minor
limit 100`))
      breaks.push({
        day,
        change: 'aggregate',
        slice: slice_at.toISOString(),
        detail: `${kind} in ${currency}`,
      });
    type Reversal = { currency: string; merchant_id: number };
    // Differences between the stored reversals of earlier days and the rows themselves.
    const reversals = await tx.query<Reversal>(sql`
select currency, merchant_id
from earlier_reversals(${startsAt}, ${endsAt}) f
full join (select * from book_reversals where day = ${day}::date) r
  using (original_day, currency, merchant_id, product_id)
where (f.rows, f.amount_minor, f.again_minor) is distinct from (r.rows, r.amount_minor, r.again_minor)
limit 100`);
    for (const { currency, merchant_id } of reversals)
      breaks.push({
        day,
        change: 'aggregate',
        detail: `reversals of merchant ${merchant_id} in ${currency}`,
      });
  }
  type Broken = { what: string; currency: string; kind: string };
  // Differences between a day's stored movements and balances and those computed from its slices
  // and the day before.
  const sums = await tx.query<Broken>(sql`
with sliced as (
  select currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id, sum(rows) as rows,
    sum(amount_minor) as amount_minor
  from book_slices where starts_at >= ${startsAt} and starts_at < ${endsAt} group by 1, 2, 3, 4, 5, 6, 7
), carried as (
  select p.currency, p.account_kind, p.merchant_id, p.issuer_id, p.product_id,
    sum(p.balance_minor) as balance_minor
  from (
    select currency, account_kind, merchant_id, issuer_id, product_id, balance_minor
    from book_balances where day = ${last?.day ?? null}::date
    union all
    select m.currency, e.account_kind, e.owner_id, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
    from sliced m ${EFFECTS}
  ) p
  group by 1, 2, 3, 4, 5
)
select 'movements' as what, s.currency, s.kind::text as kind
from sliced s
full join (select * from book_movements where day = ${day}::date) m
  using (currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
where s.rows is distinct from m.rows or s.amount_minor is distinct from m.amount_minor
union all
select 'balances', currency, account_kind
from carried c
full join (select * from book_balances where day = ${day}::date) b
  using (currency, account_kind, merchant_id, issuer_id, product_id)
where coalesce(c.balance_minor, 0) <> coalesce(b.balance_minor, 0)
limit 100`);
  for (const { what, currency, kind } of sums)
    breaks.push({ day, change: 'totals', detail: `${what}: ${kind} in ${currency}` });
  for (const { id, foundIn } of await tx.query<{ id: string; foundIn: string }>(
    sql`
select id, occurred_at, found_in::text as "foundIn" from book_late_rows
where occurred_at >= ${startsAt} and occurred_at < ${endsAt} order by id limit 1000`,
  ))
    breaks.push({ day, change: 'late', transactionId: id, detail: `booked on ${foundIn}` });
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

/** Compares the roots of the approved settlements that end on a day with those of their rows. */
async function verifySettlements(tx: Queries, day: string): Promise<Break[]> {
  const breaks: Break[] = [];
  for (const settled of await tx.query<Settled & { number: string; root: Buffer }>(sql`
select merchant_id as "merchantId", currency, starts_at as "startsAt", ends_at as "endsAt", root,
  settlement_number(merchant_id, year, number) as number
from settlements where last_day = ${day}::date and state <> 'DRAFT' order by id`))
    if (!settled.root.equals(await rootOfSettled(tx, settled)))
      breaks.push({ day, change: 'settlement', detail: `${settled.number} is not of its rows` });
  return breaks;
}

export const verify = reading({
  name: 'books.verify',
  summary: 'Compute closed days again, and name every row or closing that was changed',
  path: '/books/verify',
  description:
    'Without an interval, it verifies all closed days, and continues an earlier request that was interrupted.',
  input: {
    from: Type.Optional(INTERVAL.from),
    to: Type.Optional(INTERVAL.to),
    lastDays: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description: 'Only this number of the last closed days.',
      }),
    ),
  },
  output: VerifiedSchema,
  outcome: 'ok',
  roles: VERIFY,
  async run({ service }, { lastDays, ...input }) {
    const interval = checkInterval(input);
    if (lastDays !== undefined && (interval.from ?? interval.to) !== undefined)
      throw invalid('lastDays', 'exclusive', 'cannot be combined with `from` or `to`');
    return verifyBooks(service, { ...interval, lastDays });
  },
});

export const OPERATIONS = tableOf(verify);
