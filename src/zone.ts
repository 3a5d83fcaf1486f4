import type { Service } from './context.ts';
import type { Queries } from './db/pool.ts';
import { type Sql, sql } from './db/sql.ts';
import { invalid } from './problem.ts';
import { Refusal } from './refusal.ts';
import { isDay, isInCalendar } from './time.ts';

/**
 * Days that people name, such as the expiry of a voucher: they begin and end in the time zone of the books.
 * The database computes them, as it does the days of the books, so that both change with the same rules of
 * daylight saving time.
 */

/** Returns columns of the row of the books. `zone` is that of the days that have not begun. */
async function ofBooks<Row>(db: Queries, columns: Sql): Promise<Row> {
  const [books] = await db.query<Row>(sql`select ${columns} from books`);
  if (!books) throw new Error('the books have no row');
  return books;
}

export type SpanOfDay = { readonly startsAt: Date; readonly endsAt: Date };

/**
 * Returns the first and the last millisecond of a day.
 * @param day such as `2026-01-31`
 */
export function spanOfDay(db: Queries, day: string): Promise<SpanOfDay> {
  const columns = sql`${day}::date::timestamp at time zone zone as "startsAt",
    (${day}::date + 1)::timestamp at time zone zone - interval '1 millisecond' as "endsAt"`;
  return ofBooks(db, columns);
}

export async function zoneOfBooks(db: Queries): Promise<string> {
  return (await ofBooks<{ zone: string }>(db, sql`zone`)).zone;
}

export async function today({ db, clock }: Pick<Service, 'db' | 'clock'>): Promise<string> {
  const day = sql`(${clock()}::timestamptz at time zone zone)::date::text as day`;
  return (await ofBooks<{ day: string }>(db, day)).day;
}

type OfBooks = { readonly service: Pick<Service, 'db'> };

/**
 * Returns the end of a day in the zone of the books, or a time.
 * @throws Problem that names the field for a date that does not exist
 */
export function toEnd(caller: OfBooks, text: string, field: string): Promise<Date> {
  return toTime(caller, text, field, 'endsAt');
}

/**
 * Returns the start of a day in the zone of the books, or a time.
 * @throws Problem that names the field for a date that does not exist
 */
export function toStart(caller: OfBooks, text: string, field: string): Promise<Date> {
  return toTime(caller, text, field, 'startsAt');
}

/**
 * Returns an interval from its first moment up to, but not including, `until`; null for an open end.
 * @throws Problem that names the field for a date that does not exist, or an end before the start
 */
export async function toSpan(
  caller: OfBooks,
  { from, to }: { from?: string | null | undefined; to?: string | null | undefined },
) {
  const start = from ? await toStart(caller, from, 'from') : null;
  const end = to ? await toEnd(caller, to, 'to') : null;
  if (start && end && end < start) throw invalid('to', 'order', 'comes before `from`');
  return { from: start, until: end && new Date(end.getTime() + 1) };
}

async function toTime(
  { service: { db } }: OfBooks,
  text: string,
  field: string,
  side: keyof SpanOfDay,
): Promise<Date> {
  const day = text.slice(0, 10);
  const rule = 'must be a day such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z';
  if (!isDay(day)) throw invalid(field, 'format', rule);
  const isZoned = /(Z|[+-]\d{2}:\d{2})$/.test(text.slice(day.length));
  const time = text === day ? (await spanOfDay(db, day))[side] : new Date(isZoned ? text : `${text}Z`);
  if (!isInCalendar(time)) throw invalid(field, 'format', rule);
  return time;
}

/**
 * Refuses a rule from a closed day on: reports of closed days never change. The day stays open until the
 * transaction ends.
 * @param what the rule in the plural, such as `rates`
 * @throws Refusal `17`
 */
export async function requireOpen(tx: Queries, from: string, what: string): Promise<void> {
  // The last closed day, or null. The books are locked until the transaction ends, so no day is
  // closed meanwhile.
  const [closed] = await tx.query<{ day: string | null }>(sql`
select (select max(day)::text from book_closings) as day from books for share`);
  if (closed?.day && from <= closed.day)
    throw new Refusal('17', {
      message: `Invalid date: ${closed.day} is closed, so ${what} begin on a later day`,
    });
}
