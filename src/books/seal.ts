import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import {
  advanceMark,
  allowLongWork,
  type ClosingRow,
  insertSeals,
  insertSlices,
  setSealed,
} from './close.queries.ts';
import { findOpenDay, lockBooks, openDays } from './days.queries.ts';
import type { Books } from './days.ts';

/** Aggregates are kept for slices of so long; the midnight of every zone in use lies between two of them. */
export const SLICE_MS = 900_000;
/** What is sealed in one step where days are made good: a day's rows are sorted on disk. */
const STEP_MS = 96 * SLICE_MS;
/** While tills are busy a seal rests between two steps. */
const REST_MS = 250;
const MINUTE_MS = 60_000;

/** A slice reads an hour before and behind it: less than this is sealed only where a day ends. */
const SEAL_MIN_MS = 4 * SLICE_MS;

const floorToSlice = (ms: number) => new Date(Math.floor(ms / SLICE_MS) * SLICE_MS);

/**
 * Until when slices may be sealed: nothing is stamped before it any more, and nothing stamped before it
 * is still under way.
 */
export function sealableUntil({ now, passed_at, grace_minutes }: Books): Date {
  const graceMs = grace_minutes * MINUTE_MS;
  if (!passed_at) return new Date(0);
  return floorToSlice(Math.min(now.getTime() - graceMs, passed_at.getTime() - graceMs / 2));
}

/** Three marks in a row: the last one finds the first one passed, unless something still runs. */
const MARKS = 3;

/** Notes how far all transactions have ended. */
export async function passMark({ db }: Pick<Service, 'db'>): Promise<void> {
  for (let marks = 0; marks < MARKS; marks++) await db.query(advanceMark());
}

/** Seals the slices from the last sealed one on, within a transaction that has locked the books. */
export async function sealUntil(tx: Queries, from: Date, until: Date): Promise<void> {
  if (until <= from) return;
  await tx.query(insertSeals(from, until));
  await tx.query(insertSlices(from, until));
  await tx.query(setSealed(until));
}

/**
 * Seals what is due, but for the last slice of the day, which its close seals: commission is booked into
 * that one. In steps, so that a long absence is made good piece by piece. The sweep comes before it.
 */
export async function sealDue(service: Service, stopping: () => boolean = () => false): Promise<void> {
  const { db } = service;
  await db.query(openDays());
  await passMark(service);
  for (let more = true; more && !stopping(); ) {
    more = await db.transaction(async (tx) => {
      for (const statement of allowLongWork) await tx.query(statement);
      const [books] = await tx.query<Books>(lockBooks());
      const [day] = await tx.query<{ starts_at: Date; ends_at: Date }>(findOpenDay());
      if (!books || !day) return false;
      const from = books.sealed_until ?? day.starts_at;
      const last = day.ends_at.getTime() - SLICE_MS;
      const due = Math.min(sealableUntil(books).getTime(), last);
      if (due < last && due - from.getTime() < SEAL_MIN_MS) return false;
      const until = new Date(Math.min(due, from.getTime() + STEP_MS));
      await sealUntil(tx, from, until);
      return until > from && until.getTime() < due;
    }, 'read committed');
    if (more && db.isBusy()) await sleep(REST_MS);
  }
}

/** How closings are computed. A later version that computes anything differently has another number. */
export const VERSION = 1;

/** The hash before the first closing. */
export const GENESIS = Buffer.alloc(32);

/**
 * The hash of a closing: SHA-256 over the hash before it and the columns as JSON
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
