import type { KeyRing } from '../keyring/ring.ts';
import { type Money, toNumber } from '../money.ts';
import { isoTime } from '../time.ts';

/** A transaction as merchants see it (docs/reference/interface.md, "Transaction"). */
export type Transaction = {
  readonly transactionId: string;
  readonly type: 'ACTIVATION' | 'REDEMPTION' | 'REDEMPTION_REVERSAL';
  /** Negative for a reversal. */
  readonly amount: Money;
  readonly timestamp: Date;
  /** The merchant's reference; null if the request had none. */
  readonly reference: string | null;
  /** The full code. Every door masks it, or shows it only to the client that sent it. */
  readonly code: string;
  readonly serialNumber: bigint;
  readonly refundStatus: 'CANCELLED' | 'NEW' | null;
  readonly note: string | null;
};

/** The result of a request: the transaction, and whether an earlier copy of the request made it. */
export type Outcome = { readonly transaction: Transaction; readonly replayed: boolean };

/** The only update of a redemption: what it canceled, how, and what replaced it. */
export type RedemptionUpdate = {
  readonly original: Transaction;
  readonly cancellation: Transaction;
  /** The redemption in force now; null after a full reversal. */
  readonly replacement: Transaction | null;
  /** The reference of the redemption, or its transaction id. */
  readonly reference: string;
};

/** A journal row with the data to display it. */
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

/** Turns a journal row into a transaction. refundStatus and note are derived from the rows, not stored. */
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

/** The database's row for an update. Its three transactions are on one voucher. */
export type UpdateRow = {
  readonly original_id: string;
  readonly original_minor: bigint;
  readonly original_at: Date;
  readonly reference: string | null;
  readonly serial_number: bigint;
  readonly sealed: Buffer;
  readonly decimals: number;
  readonly reversal_id: string;
  readonly new_id: string | null;
  readonly new_minor: bigint;
  readonly updated_at: Date;
};

/** Turns the row of an update into its transactions. */
export function toUpdate(keys: KeyRing, row: UpdateRow): RedemptionUpdate {
  const { original_id, original_minor, reference, new_id, decimals, serial_number, sealed } = row;
  const named = (prefix: string) => (reference === null ? null : prefix + reference);
  const common = {
    decimals,
    serial_number,
    sealed,
    original_id,
    occurred_at: row.updated_at,
    canceled: false,
  };
  const show = (own: Pick<TransactionRow, 'id' | 'amount_minor' | 'reference'> & Partial<TransactionRow>) =>
    toTransaction(keys, { kind: 'REDEMPTION', ...common, ...own });
  const before = { occurred_at: row.original_at, original_id: null, canceled: true };
  const reversal = { id: row.reversal_id, kind: 'REDEMPTION_REVERSAL', reference: named('CANCEL-') } as const;
  return {
    original: show({ id: original_id, amount_minor: original_minor, reference, ...before }),
    cancellation: show({ ...reversal, amount_minor: original_minor }),
    replacement:
      new_id === null ? null : show({ id: new_id, amount_minor: row.new_minor, reference: named('NEW-') }),
    reference: reference ?? original_id,
  };
}

/** Masks a voucher code: its first four digits, four asterisks, its last four. */
export function maskCode(code: string): string {
  return `${code.slice(0, 4)}****${code.slice(-4)}`;
}

/**
 * Renders a transaction for answers and webhooks (docs/reference/interface.md, "Transaction"), with its code
 * masked and its amount as a number in major units.
 */
export function transactionData(transaction: Transaction) {
  return {
    transactionId: transaction.transactionId,
    transactionType: transaction.type,
    amount: toNumber(transaction.amount),
    timestamp: isoTime(transaction.timestamp.getTime()),
    reference: transaction.reference,
    voucherCode: maskCode(transaction.code),
    serialNumber: String(transaction.serialNumber),
    refundStatus: transaction.refundStatus,
    note: transaction.note,
  };
}

/** Renders an update in both shapes that clients know: the named transactions, and a list of the same. */
export function updateData({ original, cancellation, replacement, reference }: RedemptionUpdate) {
  const originalTransaction = transactionData(original);
  const cancellationTransaction = transactionData(cancellation);
  const newTransaction = replacement && transactionData(replacement);
  return {
    originalTransaction,
    cancellationTransaction,
    newTransaction,
    transactions: [originalTransaction, cancellationTransaction, ...(newTransaction ? [newTransaction] : [])],
    summary: {
      originalAmount: originalTransaction.amount,
      newAmount: newTransaction?.amount ?? 0,
      reference,
    },
  };
}
