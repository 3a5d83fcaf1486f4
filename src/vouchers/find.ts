import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { maskCode } from '../ledger/transactions.ts';
import type { Money } from '../money.ts';
import type { VoucherState } from './operate.ts';
import {
  findClaimed,
  findOfTransaction,
  listByCodeRanges,
  listBySerials,
  listVoucherRows,
  SCAN_MAX,
  sumBySerials,
  sumExpired,
} from './queries.ts';

/** Finds vouchers for the operator: by code, by masked code, by their transactions, and by batch. */

export type FoundVoucher = {
  readonly serialNumber: bigint;
  /** The full code: every door masks it. */
  readonly code: string;
  readonly state: VoucherState;
  readonly merchantId: number;
  /** The transaction id of its batch. */
  readonly batch: string;
  readonly product: string;
  readonly currency: string;
  readonly balance: Money;
  readonly value: Money | null;
  readonly activatedAt: Date | null;
  readonly expiresAt: Date;
  readonly blockedAt: Date | null;
  readonly replacedBy: bigint | null;
};

type Row = {
  serial_number: bigint;
  sealed: Buffer;
  value_minor: bigint | null;
  balance_minor: bigint;
  activated_at: Date | null;
  expires_at: Date;
  blocked_at: Date | null;
  replaced_by: bigint | null;
  state: VoucherState;
  merchant_id: number;
  transaction_id: string;
  currency: string;
  decimals: number;
  product: string;
};

function toFound(keys: KeyRing, row: Row): FoundVoucher {
  const { decimals } = row;
  return {
    serialNumber: row.serial_number,
    code: keys.open(row.serial_number, row.sealed).code,
    state: row.state,
    merchantId: row.merchant_id,
    batch: row.transaction_id,
    product: row.product,
    currency: row.currency,
    balance: { minor: row.balance_minor, decimals },
    value: row.value_minor === null ? null : { minor: row.value_minor, decimals },
    activatedAt: row.activated_at,
    expiresAt: row.expires_at,
    blockedAt: row.blocked_at,
    replacedBy: row.replaced_by,
  };
}

const FOUND_MAX = 200;

type Ranges = ReturnType<KeyRing['rangesOfMask']>;

async function findByRanges({ readDb, keys, clock }: Service, ranges: Ranges): Promise<FoundVoucher[]> {
  const rows = await readDb.query<Row>(listByCodeRanges(ranges, clock(), FOUND_MAX));
  return rows.map((row) => toFound(keys, row));
}

/** Finds a voucher by its code. @param code 12 digits */
export function findByCode(service: Service, code: string): Promise<FoundVoucher[]> {
  const codeKeys = [...service.keys.olderCodeKeys(code), service.keys.codeKey(code)];
  return findByRanges(
    service,
    codeKeys.map((key) => ({ first: key, last: key })),
  );
}

/**
 * Finds vouchers by a masked code. They are next to each other in the index of codes, so that no part of a
 * code has to be stored.
 * @param masked such as `4829****7641`
 */
export async function findByMask(service: Service, masked: string): Promise<FoundVoucher[]> {
  const found = await findByRanges(service, service.keys.rangesOfMask(masked.replaceAll('*', '')));
  return found.filter(({ code }) => maskCode(code) === masked);
}

export async function findBySerials(
  { readDb, keys, clock }: Service,
  serials: readonly bigint[],
): Promise<FoundVoucher[]> {
  if (serials.length === 0) return [];
  const rows = await readDb.query<Row>(listBySerials(plainArray(serials), clock()));
  return rows.map((row) => toFound(keys, row));
}

/** The vouchers of a batch in a selection, and their worth. */
export type PartOfBatch = {
  readonly merchantId: number;
  readonly merchant: string;
  /** The transaction id of the batch. */
  readonly batch: string;
  readonly reference: string;
  readonly currency: string;
  readonly decimals: number;
  readonly vouchers: number;
  readonly balanceMinor: bigint;
  /** The prices of vouchers that are not active: those held for them, and those that floats got back. */
  readonly reservedMinor: bigint;
  readonly releasedMinor: bigint;
};

type PartRow = {
  merchant_id: number;
  merchant: string;
  transaction_id: string;
  reference: string;
  currency: string;
  decimals: number;
  vouchers: number;
  balance_minor: bigint;
  reserved_minor: bigint;
  released_minor: bigint;
};

/** Sums up the vouchers of a selection that are not closed, batch by batch. */
export async function sumUp(db: Queries, serials: readonly bigint[]): Promise<PartOfBatch[]> {
  const rows = await db.query<PartRow>(sumBySerials(plainArray(serials)));
  return rows.map((row) => ({
    merchantId: row.merchant_id,
    merchant: row.merchant,
    batch: row.transaction_id,
    reference: row.reference,
    currency: row.currency,
    decimals: row.decimals,
    vouchers: row.vouchers,
    balanceMinor: row.balance_minor,
    reservedMinor: row.reserved_minor,
    releasedMinor: row.released_minor,
  }));
}

/** Returns the expired amounts of a selection that were not given back, by currency. */
export async function expiredOf(
  db: Queries,
  serials: readonly bigint[],
): Promise<{ readonly currency: string; readonly minor: bigint }[]> {
  const rows = await db.query<{ currency: string; expired_minor: bigint }>(sumExpired(plainArray(serials)));
  return rows.map(({ currency, expired_minor: minor }) => ({ currency, minor }));
}

/** Returns what a merchant's reference names: single vouchers, or the transaction id of a batch. */
export async function serialsOfReference(
  db: Queries,
  merchantId: number,
  reference: string,
): Promise<{ serials: bigint[]; batch: string | undefined }> {
  const rows = await db.query<{ operation: string; serial_number: bigint | null; id: string }>(
    findClaimed(merchantId, reference),
  );
  return {
    serials: [...new Set(rows.flatMap((row) => (row.serial_number === null ? [] : [row.serial_number])))],
    batch: rows.find(({ operation }) => operation === 'generate')?.id,
  };
}

/** Returns the voucher of a transaction; undefined if there is none. */
export async function serialOfTransaction(db: Queries, id: string): Promise<bigint | undefined> {
  const [row] = await db.query<{ serial_number: bigint | null }>(findOfTransaction(id));
  return row?.serial_number ?? undefined;
}

type Scanned = { scanned_to: bigint | null; scanned: bigint } & (Row | { serial_number: null });

/**
 * Returns the next vouchers of a batch, or of all batches, in the order of their serial numbers.
 * @param batchId null: all batches
 * @param after a serial number, or 0
 * @returns at most `limit` vouchers, and the start of the next page; undefined if this is the last one
 */
export async function pageOfVouchers(
  { readDb, keys, clock }: Service,
  filter: { readonly batchId: number | null; readonly state: VoucherState | null },
  after: bigint,
  limit: number,
): Promise<{ vouchers: FoundVoucher[]; next: bigint | undefined }> {
  const { batchId, state } = filter;
  const rows = await readDb.query<Scanned>(listVoucherRows(batchId, state, after, clock(), limit));
  const found = rows.filter((row): row is Scanned & Row => row.serial_number !== null);
  const vouchers = found.map((row) => toFound(keys, row));
  const [first] = rows;
  const scannedAll = Number(first?.scanned ?? 0) < (state === null ? limit : SCAN_MAX);
  if (vouchers.length === limit) return { vouchers, next: vouchers.at(-1)?.serialNumber };
  return { vouchers, next: scannedAll ? undefined : (first?.scanned_to ?? undefined) };
}
