import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { decimalsOf, type Money } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { idFloor, newId } from './id.ts';
import {
  type AccountKind,
  book,
  bookVoucher,
  findAccount,
  findJournalRow,
  insertAccounts,
  insertFloat,
  type JournalFilter,
  listJournalRows,
  type Movement,
  type VoucherMovement,
} from './queries.ts';

/** The journal as operators see it: every movement of money, of all merchants. */

export type JournalEntry = {
  readonly transactionId: string;
  readonly kind: string;
  /** Negative for a reversal. */
  readonly amount: Money;
  readonly currency: string;
  readonly timestamp: Date;
  readonly merchantId: number | null;
  readonly reference: string | null;
  readonly serialNumber: bigint | null;
  /** The full code of the voucher, which every door masks; null if the entry concerns no voucher. */
  readonly code: string | null;
  readonly originalTransactionId: string | null;
  readonly refundStatus: 'CANCELLED' | 'NEW' | null;
};

type Row = {
  id: string;
  kind: string;
  amount_minor: bigint;
  currency: string;
  occurred_at: Date;
  merchant_id: number | null;
  reference: string | null;
  serial_number: bigint | null;
  sealed: Buffer | null;
  original_id: string | null;
  canceled: boolean;
};

function toEntry(keys: KeyRing, row: Row): JournalEntry {
  const isReversal = row.kind === 'REDEMPTION_REVERSAL';
  const isNew = row.original_id !== null && row.kind === 'REDEMPTION';
  const { serial_number: serialNumber, sealed } = row;
  return {
    transactionId: row.id,
    kind: row.kind,
    amount: {
      minor: isReversal ? -row.amount_minor : row.amount_minor,
      decimals: decimalsOf(row.currency) ?? 2,
    },
    currency: row.currency,
    timestamp: row.occurred_at,
    merchantId: row.merchant_id,
    reference: row.reference,
    serialNumber,
    code: serialNumber === null || sealed === null ? null : keys.open(serialNumber, sealed).code,
    originalTransactionId: row.original_id,
    refundStatus: row.canceled ? 'CANCELLED' : isNew ? 'NEW' : null,
  };
}

/** Finds a row of the journal. @returns undefined if there is none */
export async function findEntry({ readDb, keys }: Service, id: string): Promise<JournalEntry | undefined> {
  const [row] = await readDb.query<Row>(findJournalRow(id));
  return row && toEntry(keys, row);
}

export type EntryFilter = {
  readonly merchantId: number | null;
  readonly serialNumber: bigint | null;
  readonly from: Date | null;
  readonly until: Date | null;
};

/** The highest possible id. */
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Returns a page of the journal, newest first, before an id. For a merchant, it lists its activations,
 * redemptions and reversals.
 */
export async function pageOfJournal(
  { readDb, keys }: Service,
  { merchantId, serialNumber, from, until }: EntryFilter,
  before: string | null,
  limit: number,
): Promise<JournalEntry[]> {
  const end = until ? idFloor(until) : LAST_ID;
  const filter: JournalFilter = {
    merchantId,
    serialNumber,
    from: idFloor(from ?? new Date(0)),
    before: before !== null && before < end ? before : end,
  };
  return (await readDb.query<Row>(listJournalRows(filter, limit))).map((row) => toEntry(keys, row));
}

/**
 * Creates the missing accounts of a merchant in a currency (float and settlement) and those of the operator
 * (funding and transit). It can be repeated, even by several processes at once.
 * @param currency an ISO 4217 code
 */
export async function ensureAccounts(db: Queries, merchantId: number, currency: string): Promise<void> {
  const decimals = decimalsOf(currency);
  if (decimals === undefined) throw new Error(`${currency} is not a currency of ISO 4217`);
  await db.query(insertAccounts(merchantId, currency, decimals));
  await db.query(insertFloat(merchantId, currency));
}

/**
 * Returns the number of an account; undefined if it does not exist yet.
 * @param merchantId 0 for the operator's accounts
 */
export async function accountOf(
  db: Queries,
  merchantId: number,
  currency: string,
  kind: AccountKind,
): Promise<bigint | undefined> {
  const [row] = await db.query<{ id: bigint }>(findAccount(merchantId, currency, kind));
  return row?.id;
}

/** Returns the number of an account, created if missing. @param merchantId 0 for the operator's accounts */
export async function getAccount(
  tx: Queries,
  merchantId: number,
  currency: string,
  kind: AccountKind,
): Promise<bigint> {
  const found = await accountOf(tx, merchantId, currency, kind);
  if (found !== undefined) return found;
  // The operator's accounts are created with those of a merchant. With merchant 0, only the operator's are
  // created.
  await ensureAccounts(tx, merchantId, currency);
  return (await accountOf(tx, merchantId, currency, kind)) as bigint;
}

/** The reasons for declined movements, in words of the books. */
const DECLINED: Partial<Record<RefusalCode, string>> = {
  '50': 'Insufficient merchant balance: the float does not cover it',
  '51': 'Insufficient balance: the account does not cover it',
  '13': 'Invalid amount: the account would hold too much',
  '14': 'Invalid voucher: no completed batch has this serial number',
  '44': 'Voucher canceled or replaced: that is final',
  '58': 'This was corrected before: once is all',
};

/** Books a movement between two accounts. @throws Refusal if the database declines it */
export async function post(tx: Queries, movement: Omit<Movement, 'eventId'>): Promise<void> {
  const eventId = newId(movement.now);
  await checkBooked(tx.query<{ outcome: string }>(book({ ...movement, eventId })));
}

/** Books a movement between a voucher and an account. @throws Refusal if the database declines it */
export async function postVoucher(tx: Queries, movement: Omit<VoucherMovement, 'eventId'>): Promise<void> {
  const eventId = newId(movement.now);
  await checkBooked(tx.query<{ outcome: string }>(bookVoucher({ ...movement, eventId })));
}

/**
 * Returns the rows of a booking that the database accepted.
 * @throws Refusal if the database declines it
 */
export async function checkBooked<Row extends { readonly outcome: string }>(
  booking: Promise<Row[]>,
): Promise<Row[]> {
  const rows = await booking;
  const outcome = rows[0]?.outcome;
  if (outcome === 'ok') return rows;
  const code = outcome as RefusalCode;
  const message = DECLINED[code];
  throw new Refusal(code, message === undefined ? {} : { message });
}
