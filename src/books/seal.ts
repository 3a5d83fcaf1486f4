import { hash } from 'node:crypto';
import type { Service } from '../context.ts';
import { advanceMark, allowLongWork, type ClosingRow, findSealable, seal } from './close.queries.ts';
import { findOpenDay } from './days.queries.ts';
import { SLICE_MS } from './days.ts';
import type { Pieces } from './pieces.ts';

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
  for (let marks = 0; marks < MARKS; marks++) await db.query(advanceMark());
}

/**
 * Seals the slices that are due, except the last slice of the day, piece by piece. The close seals that one,
 * since commission is booked into it. Call the sweep first.
 */
export async function sealDue({ db }: Pick<Service, 'db'>, pieces: Pieces): Promise<void> {
  const [day] = await db.query<{ starts_at: Date; ends_at: Date }>(findOpenDay());
  const [books] = await db.query<{ sealed_until: Date | null; sealable: Date | null }>(findSealable());
  if (!day || !books?.sealable) return;
  const from = books.sealed_until ?? day.starts_at;
  const last = day.ends_at.getTime() - SLICE_MS;
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

/**
 * The version of the computation of closings. A later version that computes anything differently has another
 * number.
 */
export const VERSION = 1;

/** The hash before the first closing. */
export const GENESIS = Buffer.alloc(32);

/** Returns the text of a closing that is hashed: its columns as JSON. */
export function textOfClosing(row: ClosingRow): string {
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
  return JSON.stringify(['scrip closing', ...columns]);
}

/**
 * Returns the hash of a closing: SHA-256 over the hash before it and the text of the closing
 * (docs/reference/seals.md).
 */
export function hashOfClosing(row: ClosingRow): Buffer {
  return hash('sha256', Buffer.concat([row.previous_hash, Buffer.from(textOfClosing(row))]), 'buffer');
}
