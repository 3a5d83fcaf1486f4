import { type Sql, sql } from '../db/sql.ts';

/**
 * The row of the books, locked until the transaction ends: no day is closed, no slice sealed and no
 * voucher swept meanwhile.
 */
export function lockBooks(): Sql {
  return sql`
select zone, grace_minutes, sealed_until, passed_at, database_time() as now from books for update`;
}

export function findBooks(): Sql {
  return sql`select zone, grace_minutes, sealed_until, passed_at, database_time() as now from books`;
}

/** Makes the rows of the days up to now. */
export function openDays(): Sql {
  return sql`select open_days(database_time())`;
}

export function setZone(zone: string): Sql {
  return sql`update books set zone = ${zone}`;
}

export function setGrace(minutes: number): Sql {
  return sql`update books set grace_minutes = ${minutes}`;
}

/** Nothing for a zone that PostgreSQL does not know. */
export function findZone(zone: string): Sql {
  return sql`select name from pg_timezone_names where name = ${zone}`;
}

/** The end of the newest day, and where the day after it would end in another zone. */
export function nextDayIn(zone: string): Sql {
  return sql`
select d.ends_at as starts_at, (d.day + 2)::timestamp at time zone ${zone} as ends_at
from book_days d order by d.day desc limit 1`;
}

/** The days of an interval, oldest first, with their closings where they have one. */
export function listDayRows(from: string | null, to: string | null): Sql {
  return sql`
select d.day::text as day, d.starts_at, d.ends_at, d.zone, c.rows, c.hash, c.closed_at, database_time() as now
from book_days d left join book_closings c on c.day = d.day
where (${from}::date is null or d.day >= ${from}::date) and (${to}::date is null or d.day < ${to}::date)
order by d.day`;
}

/** The oldest day that is not closed. */
export function findOpenDay(): Sql {
  return sql`
select d.day::text as day, d.starts_at, d.ends_at, d.zone from book_days d
where not exists (select from book_closings c where c.day = d.day) order by d.day limit 1`;
}

/** Nothing while a close or a sweep has the books. */
export function findFreeBooks(): Sql {
  return sql`select zone from books for update skip locked`;
}
