import type { Context } from '../context.ts';
import { type HotStatement, type Sql, sql } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { type Money, toNumber } from '../money.ts';
import { isoTime } from '../time.ts';
import { locate, lookingUp } from './booking.ts';
import { checkLookupReference } from './claims.ts';
import { idFloor } from './id.ts';

/** The longest list of transactions in the API. list_transactions of sql/011-transactions.sql has it too. */
const LIST_MAX = 50;

/** The function of sql/011-transactions.sql. */
export const FIND_TRANSACTIONS: HotStatement = {
  name: 'find-transactions',
  text: 'select * from find_transactions($1, $2, $3, $4)',
};

/**
 * Lists the newest transactions of a merchant, newest first, by the function of sql/011-transactions.sql. It
 * does not include activations by batches: see listBatchActivations.
 */
const listOwnTransactions = (merchantId: number, inForce: boolean) =>
  sql`select * from list_transactions(${merchantId}, ${inForce})`;

/** Lists a merchant's completed batches whose vouchers were active at once, newest activation first. */
function listActivatedBatches(merchantId: number, oldestId: string): Sql {
  return sql`
select id, quantity from batches
where merchant_id = ${merchantId} and status = 'COMPLETED' and newest_activation > ${oldestId}::uuid
order by newest_activation desc limit ${LIST_MAX}`;
}

const ACTIVATIONS = sql`
select j.id, j.kind, j.amount_minor, j.occurred_at, b.reference, j.serial_number, j.original_id,
  false as canceled, v.sealed, b.decimals`;

const JOURNAL_AND_BATCH = sql`
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
join batches b on b.id = v.batch_id`;

/** Lists the activations of all vouchers of small batches. */
export const listSmallBatchActivations = (batchIds: readonly number[]) =>
  sql`${ACTIVATIONS} from vouchers v ${JOURNAL_AND_BATCH} where v.batch_id = any (${batchIds}::int[])`;

/** Lists the activations of a batch's newest vouchers, without reading a batch of millions. */
export const listLargeBatchActivations = (batchId: number) => sql`${ACTIVATIONS}
from (
  select serial_number, bucket, sealed, batch_id from vouchers
  where batch_id = ${batchId} order by serial_number desc limit ${LIST_MAX}
) v ${JOURNAL_AND_BATCH}`;

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

/** A transaction in force. `reversed`: an update has reversed the redemption in full. */
type ActiveRow = Omit<TransactionRow, 'canceled'> & {
  readonly outcome: 'ok' | 'reversed';
};

const lookups = lookingUp<ActiveRow>(FIND_TRANSACTIONS);

/**
 * Finds the active transaction of a reference: the redemption or its replacement by an update, otherwise the
 * activation. A transaction without a reference is found by its id.
 * @returns undefined if there is none, also after a full reversal
 * @throws Refusal `18`
 */
export async function findTransaction(context: Context, reference: string): Promise<Transaction | undefined> {
  checkLookupReference(reference);
  const { service, merchant } = context;
  for (const { id, bucket } of await locate(service, merchant.id, ['redeem', 'activate'], reference)) {
    const row = await service.batcher.add(lookups, bucket, { context, reference, id });
    if (row)
      return row.outcome === 'ok' ? toTransaction(service.keys, { ...row, canceled: false }) : undefined;
  }
  return undefined;
}

/**
 * Lists the merchant's most recent transactions, newest first, at most 50.
 * @param options.inForceOnly leaves out reversals, and redemptions that an update has replaced
 */
export async function listTransactions(
  context: Context,
  options: { inForceOnly: boolean },
): Promise<Transaction[]> {
  const { readDb, keys } = context.service;
  const own = await readDb.query<TransactionRow>(
    listOwnTransactions(context.merchant.id, options.inForceOnly),
  );
  const oldest = own.length < LIST_MAX ? undefined : own.at(-1);
  const generated = await listGenerated(context, oldest?.id ?? idFloor(new Date(0)));
  return [...own, ...generated]
    .sort((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, LIST_MAX)
    .map((row) => toTransaction(keys, row));
}

/**
 * Lists activations by generation, from the newest completed batches backwards, until a list is full.
 * @param oldestId a batch without a newer activation does not count
 */
async function listGenerated({ service, merchant }: Context, oldestId: string): Promise<TransactionRow[]> {
  const { readDb } = service;
  const batches = await readDb.query<{ id: number; quantity: number }>(
    listActivatedBatches(merchant.id, oldestId),
  );
  const small: number[] = [];
  let large: number | undefined;
  for (let [at, count] = [0, 0]; at < batches.length && count < LIST_MAX && large === undefined; at++) {
    const { id, quantity } = batches[at] as { id: number; quantity: number };
    if (quantity > LIST_MAX) large = id;
    else small.push(id);
    count += quantity;
  }
  return [
    ...(small.length > 0 ? await readDb.query<TransactionRow>(listSmallBatchActivations(small)) : []),
    ...(large === undefined ? [] : await readDb.query<TransactionRow>(listLargeBatchActivations(large))),
  ];
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
