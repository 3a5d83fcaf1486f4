import type { Service } from '../context.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { decimalsOf, type Money } from '../money.ts';
import { idFloor } from './id.ts';
import { findJournalRow, type JournalFilter, listJournalRows } from './journal.queries.ts';

/** The journal as the operator sees it: every movement of money, of all merchants. */

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
  /** The full code of the voucher, which every door masks; null where no voucher is concerned. */
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

/** A row of the journal. @returns undefined where there is none */
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

/** The last id there can be. */
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * A page of the journal, newest first, before an id. Of a merchant: its activations, redemptions and
 * reversals.
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
