import { hash } from 'node:crypto';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { MINUTE_MS } from '../time.ts';
import {
  advanceMark,
  allowLongWork,
  type ClosingRow,
  insertSeals,
  insertSlices,
  setSealed,
} from './close.queries.ts';
import { findOpenDay, lockBooks } from './days.queries.ts';
import { type Books, getBooks, SLICE_MS } from './days.ts';
import type { Pieces } from './pieces.ts';

/**
 * The shortest interval that is sealed, except at the end of a day. A seal also reads the hour before and the
 * hour after its interval.
 */
const SEAL_MIN_MS = 4 * SLICE_MS;

const floorToSlice = (ms: number) => new Date(Math.floor(ms / SLICE_MS) * SLICE_MS);

/**
 * Returns the time up to which slices may be sealed. No new row gets an earlier time, and every transaction
 * with an earlier time has ended.
 */
export function sealableUntil({ now, passed_at, grace_minutes }: Books): Date {
  const graceMs = grace_minutes * MINUTE_MS;
  if (!passed_at) return new Date(0);
  return floorToSlice(Math.min(now.getTime() - graceMs, passed_at.getTime() - graceMs / 2));
}

/**
 * The number of marks in a row. By the third mark, all transactions before the first one have ended, unless
 * one of them is still running.
 */
const MARKS = 3;

/** Records the time up to which all transactions have ended. */
export async function passMark({ db }: Pick<Service, 'db'>): Promise<void> {
  for (let marks = 0; marks < MARKS; marks++) await db.query(advanceMark());
}

/**
 * Seals slices from the last sealed one on. The transaction must hold the lock on the books.
 * @returns the number of rows
 */
export async function sealUntil(tx: Queries, from: Date, until: Date): Promise<number> {
  if (until <= from) return 0;
  const seals = await tx.query<{ rows: bigint }>(insertSeals(from, until));
  await tx.query(insertSlices(from, until));
  await tx.query(setSealed(until));
  return seals.reduce((sum, { rows }) => sum + Number(rows), 0);
}

/**
 * Seals the slices that are due, except the last slice of the day, piece by piece. The close seals that one,
 * since commission is booked into it. Call the sweep first.
 */
export async function sealDue({ db }: Service, pieces: Pieces): Promise<void> {
  const books = await getBooks(db);
  const [day] = await db.query<{ starts_at: Date; ends_at: Date }>(findOpenDay());
  if (!day) return;
  const from = books.sealed_until ?? day.starts_at;
  const last = day.ends_at.getTime() - SLICE_MS;
  const due = Math.min(sealableUntil(books).getTime(), last);
  if (due < last && due - from.getTime() < SEAL_MIN_MS) return;
  await pieces.over(from, new Date(due), (start, end) =>
    db.transaction(async (tx) => {
      await tx.query(allowLongWork);
      const [now] = await tx.query<Books>(lockBooks());
      // Another process may have sealed them.
      if ((now?.sealed_until ?? day.starts_at).getTime() !== start.getTime()) return 0;
      return sealUntil(tx, start, end);
    }, 'read committed'),
  );
}

/**
 * The version of the computation of closings. A later version that computes anything differently has another
 * number.
 */
export const VERSION = 1;

/** The hash before the first closing. */
export const GENESIS = Buffer.alloc(32);

/**
 * Returns the hash of a closing: SHA-256 over the hash before it and the columns as JSON
 * (docs/explanation/books.md).
 */
export function hashOfClosing(row: ClosingRow): Buffer {
  const columns = [
    row.day,
    row.starts_at.toISOString(),
    row.ends_at.toISOString(),
    row.zone,
    String(row.rows),
    row.first_id,
    row.last_id,
    row.rows_hash.toString('hex'),
    row.totals,
    row.version,
    row.closed_at.toISOString(),
  ];
  const text = JSON.stringify(['scrip closing', ...columns]);
  return hash('sha256', Buffer.concat([row.previous_hash, Buffer.from(text)]), 'buffer');
}
