import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { MINUTE_MS } from '../time.ts';
import { type BookDay, type Books, findUnswept, lockBooks } from './days.ts';
import { passMark } from './seal.ts';

/** Why a day cannot be closed yet. */
export const WAIT_CAUSES = ['not-due', 'open-transaction', 'other-close', 'voucher-in-use'] as const;

export type Waiting = {
  readonly day: string;
  readonly cause: (typeof WAIT_CAUSES)[number];
  /** The cause as text for people. */
  readonly reason: string;
  readonly endsAt: Date;
  /** When the grace after the end of the day is over. */
  readonly dueAt: Date;
  /** Of an `open-transaction`: prepared transactions, which somebody has to end. */
  readonly prepared: readonly { readonly name: string; readonly since: Date }[];
};

/** The longest time that a close waits for transactions that are still running. Transactions are short. */
export const PASS_WAIT_MS = 3_000;
export const PASS_STEP_MS = 100;

/** Returns the reason why a day cannot be closed now, or null if it can be closed. */
export async function explainWait(service: Service, day: BookDay): Promise<Waiting | null> {
  for (const until = performance.now() + PASS_WAIT_MS; ; ) {
    const found = await findWait(service, day);
    if (found?.cause !== 'open-transaction' || performance.now() > until) return found;
    await sleep(PASS_STEP_MS);
    await passMark(service);
  }
}

function dueAtOf({ endsAt }: BookDay, { grace_minutes }: Pick<Books, 'grace_minutes'>): Date {
  return new Date(endsAt.getTime() + grace_minutes * MINUTE_MS);
}

export const VOUCHER_IN_USE = 'another transaction uses a voucher that has expired';

/** Returns a wait for another transaction, which ends by itself. */
export function waitingFor(row: BookDay, books: Books, cause: Waiting['cause'], reason: string): Waiting {
  return { day: row.day, cause, reason, endsAt: row.endsAt, dueAt: dueAtOf(row, books), prepared: [] };
}

function findWait(service: Service, row: BookDay): Promise<Waiting | null> {
  const { day, endsAt } = row;
  return service.db.transaction(async (tx) => {
    const [books] = await tx.query<Books>(lockBooks());
    if (!books) throw new Error('the books have no row');
    const dueAt = dueAtOf(row, books);
    if (books.now < dueAt) {
      const reason = `${day} ends at ${endsAt.toISOString()}, and is due at ${dueAt.toISOString()}`;
      return { day, cause: 'not-due', reason, endsAt, dueAt, prepared: [] };
    }
    const passedAt = books.passed_at ?? new Date(0);
    if (passedAt.getTime() - (books.grace_minutes * MINUTE_MS) / 2 >= endsAt.getTime()) {
      const [unswept] = await tx.query<{ found: boolean }>(findUnswept(endsAt));
      return unswept?.found ? waitingFor(row, books, 'voucher-in-use', VOUCHER_IN_USE) : null;
    }
    // Prepared transactions that have not ended. A close may have to wait for them.
    const rows = await tx.query<{ gid: string; prepared: Date }>(
      sql`select gid, prepared from pg_prepared_xacts order by prepared limit 5`,
    );
    const prepared = rows.map(({ gid: name, prepared: since }) => ({ name, since }));
    const names = prepared.map(({ name, since }) => `${name} (since ${since.toISOString()})`).join(', ');
    const held = names === '' ? '' : `; prepared transactions: ${names}`;
    const reason = `a transaction that may belong to ${day} has not ended${held}`;
    return { day, cause: 'open-transaction', reason, endsAt, dueAt, prepared };
  });
}
