import { hash } from 'node:crypto';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { type BookDay, findOpenDay, SLICE_MS } from './days.ts';
import { leafHash, rootOf } from './merkle.ts';
import type { Pieces } from './pieces.ts';

/**
 * Lets a close run longer than a request, and gives it memory for its sorts: it reads a whole day. The close
 * uses only one core of the database and leaves the others to the tills.
 */
export const allowLongWork = sql`
select set_config('max_parallel_workers_per_gather', '0', true), set_config('statement_timeout', '2h', true),
  set_config('work_mem', '64MB', true), set_config('enable_bitmapscan', 'on', true),
  set_config('TimeZone', 'UTC', true)`;

/** Seals the slices from the last sealed one up to a time (sql/025-seals.sql). Returns the number of rows. */
export function seal(until: Date): Sql {
  return sql`select seal(${until}) as rows`;
}

export type ClosingRow = BookDay & {
  readonly rows: bigint;
  readonly firstId: string | null;
  readonly lastId: string | null;
  readonly root: Buffer;
  readonly totals: string;
  readonly version: number;
  readonly closedAt: Date;
  readonly previousHash: Buffer;
};

export type Closing = ClosingRow & { readonly hash: Buffer };

/** Lists the closings of an interval of days, oldest first. */
export function listClosings(from: string | null, to: string | null): Sql {
  return sql`
select day::text as day, starts_at as "startsAt", ends_at as "endsAt", zone, rows,
  first_id::text as "firstId", last_id::text as "lastId", root, totals, version,
  closed_at as "closedAt", previous_hash as "previousHash", hash
from book_closings
where (${from}::date is null or day >= ${from}::date) and (${to}::date is null or day < ${to}::date)
order by day`;
}

/**
 * The shortest interval that is sealed, except at the end of a day. A seal also reads the hour before and the
 * hour after its interval.
 */
const SEAL_MIN_MS = 4 * SLICE_MS;

/**
 * The number of marks in a row. By the third mark, all transactions before the first one have ended, unless
 * one of them is still running.
 */
const MARKS = 3;

/** Records the time up to which all transactions have ended. */
export async function passMark({ db }: Pick<Service, 'db'>): Promise<void> {
  // Marks the newest transaction and returns the time up to which all transactions have ended
  // (sql/023-marks.sql).
  for (let marks = 0; marks < MARKS; marks++) await db.query(sql`select now_at, passed from advance_mark()`);
}

/**
 * Seals the slices that are due, except the last slice of the day, piece by piece. The close seals that one,
 * since commission is booked into it. Call the sweep first.
 */
export async function sealDue({ db }: Pick<Service, 'db'>, pieces: Pieces): Promise<void> {
  const day = await findOpenDay(db);
  // The times up to which slices are sealed, and may be sealed (sql/025-seals.sql).
  const [books] = await db.query<{ sealedUntil: Date | null; sealable: Date | null }>(
    sql`select sealed_until as "sealedUntil", sealable_until() as sealable from books`,
  );
  if (!day || !books?.sealable) return;
  const from = books.sealedUntil ?? day.startsAt;
  const last = day.endsAt.getTime() - SLICE_MS;
  const due = Math.min(books.sealable.getTime(), last);
  if (due < last && due - from.getTime() < SEAL_MIN_MS) return;
  await pieces.over(from, new Date(due), (_start, end) =>
    db.transaction(async (tx) => {
      await tx.query(allowLongWork);
      const [sealed] = await tx.query<{ rows: bigint }>(seal(end));
      return Number(sealed?.rows ?? 0);
    }, 'read committed'),
  );
}

/** The text of a slice that is hashed: its beginning, the number of its rows, and the root of their tree. */
export const textOfSlice = (slice: Slice) =>
  [slice.startsAt.toISOString(), slice.rows, slice.root.toString('hex')].join('|');

/** A sealed slice. `root` is that of the tree of its rows. */
export type Slice = { readonly startsAt: Date; readonly rows: bigint; readonly root: Buffer };

/** Lists the sealed slices of a day, oldest first. */
export function listSlices({ startsAt, endsAt }: BookDay): Sql {
  return sql`
select starts_at as "startsAt", rows, root from book_seals
where starts_at >= ${startsAt} and starts_at < ${endsAt} order by starts_at`;
}

/** Returns the number of rows in the sealed slices of a day, and the root of the tree of the slices. */
export async function sumOfSlices(tx: Queries, day: BookDay): Promise<Pick<ClosingRow, 'rows' | 'root'>> {
  const slices = await tx.query<Slice>(listSlices(day));
  return {
    rows: slices.reduce((sum, { rows }) => sum + rows, 0n),
    root: rootOf(slices.map((slice) => leafHash(textOfSlice(slice)))),
  };
}

/**
 * The version of the computation of closings. A later version that computes anything differently has another
 * number.
 */
export const VERSION = 1;

/** The hash before the first closing. */
export const GENESIS = Buffer.alloc(32);

/**
 * Returns the text of a closing that is hashed: its columns as JSON, with the hash of the totals instead of
 * the totals (docs/reference/proof.md).
 */
export function textOfClosing(row: ClosingRow): string {
  return JSON.stringify([
    'scrip closing',
    row.previousHash.toString('hex'),
    row.day,
    row.startsAt.toISOString(),
    row.endsAt.toISOString(),
    row.zone,
    String(row.rows),
    row.firstId,
    row.lastId,
    row.root.toString('hex'),
    hash('sha256', row.totals),
    row.version,
    row.closedAt.toISOString(),
  ]);
}
