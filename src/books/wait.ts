import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { MINUTE_MS } from '../time.ts';
import { type BookDay, type Books, hasUnswept, lockBooks } from './days.ts';
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

function dueAtOf({ endsAt }: BookDay, { graceMinutes }: Books): Date {
  return new Date(endsAt.getTime() + graceMinutes * MINUTE_MS);
}

export const VOUCHER_IN_USE = 'another transaction uses a voucher that has expired';

/** Returns a wait for another transaction, which ends by itself. */
export function waitingFor(row: BookDay, books: Books, cause: Waiting['cause'], reason: string): Waiting {
  return { day: row.day, cause, reason, endsAt: row.endsAt, dueAt: dueAtOf(row, books), prepared: [] };
}

function findWait(service: Service, row: BookDay): Promise<Waiting | null> {
  const { day, endsAt } = row;
  return service.db.transaction(async (tx) => {
    const books = await lockBooks(tx);
    const dueAt = dueAtOf(row, books);
    if (books.now < dueAt) {
      const reason = `${day} ends at ${endsAt.toISOString()}, and is due at ${dueAt.toISOString()}`;
      return waitingFor(row, books, 'not-due', reason);
    }
    const passedAt = books.passedAt ?? new Date(0);
    if (passedAt.getTime() - (books.graceMinutes * MINUTE_MS) / 2 >= endsAt.getTime())
      return (await hasUnswept(tx, endsAt)) ? waitingFor(row, books, 'voucher-in-use', VOUCHER_IN_USE) : null;
    // Prepared transactions that have not ended. A close may have to wait for them.
    const prepared = await tx.query<Waiting['prepared'][number]>(
      sql`select gid as name, prepared as since from pg_prepared_xacts order by prepared limit 5`,
    );
    const names = prepared.map(({ name, since }) => `${name} (since ${since.toISOString()})`).join(', ');
    const held = names === '' ? '' : `; prepared transactions: ${names}`;
    const reason = `a transaction that may belong to ${day} has not ended${held}`;
    return { ...waitingFor(row, books, 'open-transaction', reason), prepared };
  });
}
