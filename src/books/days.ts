import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { listingAll } from '../listing.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { MONEY, SEE, VERIFY } from '../principal.ts';
import { invalid, requireChange } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { Count, checkDay, Day, Nullable, NullableText, NullableTime, Text, Time, Word } from '../schema.ts';
import { HOUR_MS } from '../time.ts';

/** The length of a slice. Every zone's midnight falls on the boundary between two slices. */
export const SLICE_MS = 900_000;

/** A day of the books: [startsAt, endsAt), in the zone of the books when the day began. */
export type BookDay = {
  readonly day: string;
  readonly startsAt: Date;
  readonly endsAt: Date;
  readonly zone: string;
};

const DaySchema = Type.Object({
  day: Day,
  startsAt: Time,
  endsAt: Time,
  zone: Text,
  /** `closing`: the day has ended, but is not closed yet. The rest is null unless the day is closed. */
  state: Word(['open', 'closing', 'closed'] as const, { 'x-labels': { closing: 'Ended' } }),
  rows: Nullable(Count),
  hash: NullableText,
  closedAt: NullableTime,
});
export type ListedDay = Static<typeof DaySchema>;

/** The row of the books. */
export type Books = {
  /** The zone of the next days. */
  readonly zone: string;
  readonly graceMinutes: number;
  /** The times up to which slices are sealed, and transactions have ended. */
  readonly sealedUntil: Date | null;
  readonly passedAt: Date | null;
  /** The time on the database's clock. */
  readonly now: Date;
};

const BOOKS = sql`
select zone, grace_minutes as "graceMinutes", sealed_until as "sealedUntil", passed_at as "passedAt",
  database_time() as now
from books`;

export async function getBooks(db: Queries): Promise<Books> {
  const [books] = (await db.query<Books>(BOOKS)) as [Books];
  return books;
}

/**
 * Locks the row of the books until the transaction ends. Meanwhile no day is closed, no slice is sealed, and
 * no voucher is swept.
 */
export async function lockBooks(tx: Queries): Promise<Books> {
  const [books] = (await tx.query<Books>(sql`${BOOKS} for update`)) as [Books];
  return books;
}

/** Adds the rows of all days up to now. */
export async function openDays(db: Queries): Promise<void> {
  await db.query(sql`select open_days(database_time())`);
}

const DAY = sql`d.day::text as day, d.starts_at as "startsAt", d.ends_at as "endsAt", d.zone`;

/** Returns the oldest day that is not closed. */
export async function findOpenDay(db: Queries): Promise<BookDay | undefined> {
  const [day] = await db.query<BookDay>(sql`
select ${DAY} from book_days d
where not exists (select from book_closings c where c.day = d.day) order by d.day limit 1`);
  return day;
}

/** Returns whether a voucher that expired before a time has not been swept. */
export async function hasUnswept(tx: Queries, before: Date): Promise<boolean> {
  // On several shards, a subquery must have a column.
  const [row] = (await tx.query<{ found: boolean }>(sql`
select exists (
    select 1 from batches where status = 'COMPLETED' and swept_at is null and expires_at < ${before}
  )
  or exists (select 1 from voucher_expiries where due_at < ${before}) as found`)) as [{ found: boolean }];
  return row.found;
}

/** The rows of the journal that are booked in an interval, as a condition on `book_rows`. */
export const bookedBetween = (from: Date, to: Date): Sql => sql`
place >= id_floor(${from}::timestamptz, '-1 hour') and place < id_floor(${to}::timestamptz, '1 hour')
  and booked_at >= ${from} and booked_at < ${to}`;

/** The rows of a slice, as a condition on `book_rows`. */
export const inSlice = (slice: Date): Sql => sql`
place >= id_floor(${slice}::timestamptz, '-1 hour') and place < id_floor(${slice}::timestamptz, '75 minutes')
  and slice_at = ${slice}`;

/** What movements `m` change on the balances of accounts. */
export const EFFECTS = sql`
cross join lateral effects(
  m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor::bigint
) e`;

/**
 * Lists the days, oldest first.
 * @param from inclusive, such as 2026-01-31; by default the first day
 * @param to exclusive; by default after the last day
 * @param newest at most so many, the last ones
 */
export async function listDays(
  { db }: Pick<Service, 'db'>,
  { from = null, to = null, newest = null }: Nullish<{ from: string; to: string; newest: number }> = {},
): Promise<ListedDay[]> {
  await openDays(db);
  return db.query<ListedDay>(sql`
select ${DAY},
  case when c.day is not null then 'closed' when d.ends_at <= database_time() then 'closing' else 'open' end
    as state,
  c.rows::float8 as rows, encode(c.hash, 'hex') as hash, c.closed_at as "closedAt"
from (
  select * from book_days
  where (${from}::date is null or day >= ${from}::date) and (${to}::date is null or day < ${to}::date)
  order by day desc limit ${newest}::integer
) d
left join book_closings c on c.day = d.day
order by d.day`);
}

type Nullish<Values> = { readonly [Name in keyof Values]?: Values[Name] | null | undefined };

/** The shortest day that a change of zone may leave. */
const DAY_MIN_MS = HOUR_MS;

/**
 * Sets the zone of the books from the first day that has not begun, and the grace after which a day is
 * closed.
 * @throws Refusal `30` for an unknown zone, or one in which the next day would end before it begins
 */
export async function setBooks(
  operator: Operator,
  wanted: Partial<Static<typeof BooksSettings>>,
): Promise<Books> {
  const { db } = operator.service;
  return db.transaction(async (tx) => {
    await openDays(tx);
    const before = await lockBooks(tx);
    const { zone = before.zone, graceMinutes = before.graceMinutes } = wanted;
    if (zone !== before.zone) {
      // There is no row for a zone that PostgreSQL does not know.
      if ((await tx.query(sql`select name from pg_timezone_names where name = ${zone}`)).length === 0)
        throw new Refusal('30', {
          message: 'Invalid request: the zone is not one of the IANA database, such as Europe/Rome',
        });
      // The end of the newest day, and the end that the day after it would have in another zone.
      const [next] = await tx.query<{ startsAt: Date; endsAt: Date }>(sql`
select d.ends_at as "startsAt", (d.day + 2)::timestamp at time zone ${zone} as "endsAt"
from book_days d order by d.day desc limit 1`);
      if (next && next.endsAt.getTime() - next.startsAt.getTime() < DAY_MIN_MS)
        throw new Refusal('30', {
          message: 'Invalid request: the next day would be over before it begins; change to UTC first',
        });
      await tx.query(sql`update books set zone = ${zone}`);
    }
    await tx.query(sql`update books set grace_minutes = ${graceMinutes}`);
    await audit(tx, operator, {
      action: 'books.set',
      subject: 'books',
      before: { zone: before.zone, graceMinutes: before.graceMinutes },
      after: { zone, graceMinutes },
    });
    return { ...before, zone, graceMinutes };
  });
}

export function checkInterval({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  checkDay(from, 'from');
  checkDay(to, 'to');
  if (from !== undefined && to !== undefined && to <= from)
    throw invalid('to', 'minimum', 'must be later than `from`: it is the day after the last one');
  return { from, to };
}

/** An interval of days, as reports, exports and verifications take it. */
export const INTERVAL = {
  from: { ...Day, description: 'The first day.' },
  to: { ...Day, description: 'The day after the last one.' },
};
const ANY_INTERVAL = { from: Type.Optional(INTERVAL.from), to: Type.Optional(INTERVAL.to) };
/** More days than pages show at a time. */
const NEWEST_MAX = 1_000;

export const days = listingAll({
  name: 'books.days',
  summary: 'List the days: open, ended and not yet closed, or closed with their hash',
  path: '/books/days',
  columns: ['day', 'startsAt', 'endsAt', 'zone', 'state', 'rows', 'hash'],
  input: {
    ...ANY_INTERVAL,
    newest: Type.Optional(
      Type.Integer({ minimum: 1, maximum: NEWEST_MAX, description: 'At most so many, the last ones.' }),
    ),
  },
  item: DaySchema,
  roles: VERIFY,
  rows: async ({ service }, { newest, ...interval }) =>
    listDays(service, { ...checkInterval(interval), newest }),
});

const BooksSettings = Type.Object({ zone: Text, graceMinutes: Count });

export const show = reading({
  name: 'books.show',
  summary: 'Get the time zone of the days, and the time between the end of a day and its close',
  path: '/books',
  input: {},
  output: BooksSettings,
  roles: SEE,
  run: ({ service }) => getBooks(service.db),
});

export const set = changing({
  name: 'books.set',
  summary:
    'Set the time zone of days that have not begun, and the time between the end of a day and its close',
  method: 'PATCH',
  path: '/books',
  input: {
    zone: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9_+/-]{1,60}$', description: 'Of the IANA database.' }),
    ),
    graceMinutes: Type.Optional(
      Type.Integer({
        minimum: 5,
        maximum: 60,
        description: 'How many minutes after its end a day closes.',
      }),
    ),
  },
  output: BooksSettings,
  roles: MONEY,
  approval: alone('It takes effect from a day that has not begun, and moves no money.'),
  risk: 'step-up',
  async run(caller, wanted) {
    requireChange(wanted, 'zone');
    return setBooks(caller, wanted);
  },
});

export const OPERATIONS = tableOf(days, show, set);
