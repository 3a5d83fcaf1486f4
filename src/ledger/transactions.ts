import type { Context } from '../context.ts';
import { gather } from '../db/gather.ts';
import { plainArray, textArray } from '../db/sql.ts';
import type { Money } from '../money.ts';
import type { KeyRing } from '../secrets.ts';
import { checkLookupReference } from './reference.ts';
import { FIND_TRANSACTION, LIST_TRANSACTIONS } from './transactions.queries.ts';

/** A transaction as merchants see it (docs/reference/interface.md, "Transaction"). */
export type Transaction = {
  readonly transactionId: string;
  readonly type: 'ACTIVATION' | 'REDEMPTION' | 'REDEMPTION_REVERSAL';
  /** Negative for a reversal. */
  readonly amount: Money;
  readonly timestamp: Date;
  /** The merchant's; null where the request had none. */
  readonly reference: string | null;
  /** The full code: every door masks it, or shows it only to the one who sent it. */
  readonly code: string;
  readonly serialNumber: bigint;
  readonly refundStatus: 'CANCELLED' | 'NEW' | null;
  readonly note: string | null;
};

/** What a request came to: the transaction, and whether an earlier copy of the request made it. */
export type Outcome = { readonly transaction: Transaction; readonly replayed: boolean };

/** The one update of a redemption: what it canceled, how, and what it put in place. */
export type RedemptionUpdate = {
  readonly original: Transaction;
  readonly cancellation: Transaction;
  /** The redemption in force now; null after a full reversal. */
  readonly replacement: Transaction | null;
  /** What the redemption is known by: its reference, or its transaction id. */
  readonly reference: string;
};

/** A journal row with what else it takes to show it. */
export type TransactionRow = {
  id: string;
  kind: Transaction['type'];
  amount_minor: bigint;
  decimals: number;
  occurred_at: Date;
  reference: string | null;
  serial_number: bigint;
  sealed: Buffer;
  original_id: string | null;
  /** Whether an update has canceled this redemption. */
  canceled: boolean;
};

/** Turns a journal row into a transaction. refundStatus and note follow from the rows; nothing stores them. */
export function toTransaction(keys: KeyRing, row: TransactionRow): Transaction {
  const reversal = row.kind === 'REDEMPTION_REVERSAL';
  return {
    transactionId: row.id,
    type: row.kind,
    amount: { minor: reversal ? -row.amount_minor : row.amount_minor, decimals: row.decimals },
    timestamp: row.occurred_at,
    reference: row.reference,
    code: keys.open(row.serial_number, row.sealed).code,
    serialNumber: row.serial_number,
    refundStatus: row.canceled ? 'CANCELLED' : row.original_id !== null && !reversal ? 'NEW' : null,
    note: noteOf(row),
  };
}

function noteOf({ kind, canceled, original_id }: TransactionRow): string | null {
  if (canceled) return 'Canceled by an update of the redemption';
  if (original_id === null) return null;
  return kind === 'REDEMPTION_REVERSAL'
    ? `Reversal of redemption ${original_id}`
    : `Created by an update of redemption ${original_id}`;
}

type Lookup = { readonly context: Context; readonly reference: string };

const findGathered = gather<Lookup, Transaction | undefined>({
  callerOf: ({ context }) => context.merchant.id,
  keysOf: () => [],
  async run(db, lookups) {
    const rows = await db.hot<TransactionRow & { ord: number }>(FIND_TRANSACTION, [
      plainArray(lookups.map(({ context }) => context.merchant.id)),
      textArray(lookups.map(({ reference }) => reference)),
    ]);
    const found = new Map(rows.map((row) => [row.ord, row]));
    return lookups.map(({ context }, index) => {
      const row = found.get(index + 1);
      return row && toTransaction(context.service.keys, row);
    });
  },
});

/**
 * The active transaction of a reference: the redemption, or what an update put in its place, else the activation. A
 * transaction without a reference is found by its transaction id.
 * @returns undefined where there is none, also after a full reversal
 * @throws Refusal `18`
 */
export async function findTransaction(context: Context, reference: string): Promise<Transaction | undefined> {
  checkLookupReference(reference);
  return findGathered(context.service.db, { context, reference });
}

/**
 * The merchant's most recent transactions, newest first, at most 50.
 * @param options.inForceOnly leaves out reversals, and redemptions that an update has replaced
 */
export async function listTransactions(context: Context, options: { inForceOnly: boolean }): Promise<Transaction[]> {
  const { db, keys } = context.service;
  const rows = await db.hot<TransactionRow>(LIST_TRANSACTIONS, [context.merchant.id, options.inForceOnly]);
  return rows.map((row) => toTransaction(keys, row));
}
