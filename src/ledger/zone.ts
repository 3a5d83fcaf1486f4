import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { findBooksZone, findSpanOfDay, findToday } from './queries.ts';

/**
 * Days that people name, such as the expiry of a voucher: they begin and end in the time zone of the books.
 * The database computes them, as it does the days of the books, so that both change with the same rules of
 * daylight saving time.
 */

export type SpanOfDay = { readonly startsAt: Date; readonly endsAt: Date };

/**
 * Returns the first and the last millisecond of a day.
 * @param day such as `2026-01-31`
 */
export async function spanOfDay(db: Queries, day: string): Promise<SpanOfDay> {
  const [span] = await db.query<SpanOfDay>(findSpanOfDay(day));
  if (!span) throw new Error('the books have no row');
  return span;
}

/** Returns the zone of the books, for the days of many times. */
export async function zoneOfBooks(db: Queries): Promise<string> {
  const [books] = await db.query<{ zone: string }>(findBooksZone);
  if (!books) throw new Error('the books have no row');
  return books.zone;
}

/** Returns the day that it is now. */
export async function today({ db, clock }: Pick<Service, 'db' | 'clock'>): Promise<string> {
  const [row] = await db.query<{ day: string }>(findToday(clock()));
  if (!row) throw new Error('the books have no row');
  return row.day;
}
