import type { Queries } from '../db/pool.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import { decimalsOf } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { newId } from './id.ts';
import type { AccountKind } from './kinds.ts';

/** The accounts, and the bookings between them. */

/**
 * Creates the missing accounts of a merchant in a currency (float and settlement) and those of the operator
 * (funding and transit). It can be repeated, even by several processes at once.
 * @param currency an ISO 4217 code
 */
export async function ensureAccounts(db: Queries, merchantId: number, currency: string): Promise<void> {
  const decimals = decimalsOf(currency);
  if (decimals === undefined) throw new Error(`${currency} is not a currency of ISO 4217`);
  await db.query(sql`
insert into accounts (kind, merchant_id, currency, decimals)
select k.kind, case when k.kind in ('FLOAT', 'SETTLEMENT') then ${merchantId}::int else 0 end,
  ${currency}, ${decimals}
from unnest(enum_range(null::account_kind)) as k (kind)
where k.kind <> 'RESERVE' and (${merchantId}::int > 0 or k.kind not in ('FLOAT', 'SETTLEMENT'))
on conflict do nothing`);
  await db.query(sql`
insert into floats (account_id, merchant_id, currency, decimals)
select id, merchant_id, currency, decimals from accounts
where merchant_id = ${merchantId} and currency = ${currency} and kind = 'FLOAT'
on conflict do nothing`);
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
  const [row] = await db.query<{ id: bigint }>(sql`
select id from accounts
where merchant_id = ${merchantId} and currency = ${currency} and kind = ${kind}::account_kind`);
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

/**
 * Fails if nothing may be booked at this time: the clock of this process and that of the database differ, or
 * they were set back (sql/005-rules.sql).
 */
export const checkStamp = (now: Date): Sql => sql`select check_stamp(${now})`;

type Movement = {
  readonly kind: string;
  readonly id: string;
  readonly amountMinor: bigint;
  /** The row that this one corrects. */
  readonly originalId?: string | null;
  readonly reference?: string | null;
  readonly now: Date;
};

/** A movement between two accounts other than vouchers and reserves. */
type AccountMovement = Movement & {
  readonly debit: bigint;
  readonly credit: bigint;
  /** The owner of the float or settlement account; null if there is none. */
  readonly merchantId: number | null;
};

/** Books a movement between two accounts. @throws Refusal if the database declines it */
export async function post(tx: Queries, movement: AccountMovement): Promise<void> {
  const { kind, id, debit, credit, amountMinor, merchantId, now } = movement;
  const { originalId = null, reference = null } = movement;
  const booking = tx.query<{ outcome: string }>(sql`
select book(${kind}::entry_kind, ${id}, ${debit}, ${credit}, ${amountMinor}, ${merchantId},
  ${originalId}, ${reference}, ${newId(now)}, ${now}) as outcome`);
  await checkBooked(booking);
}

/** A movement between a voucher and an account. */
type VoucherMovement = Movement & {
  readonly bucket: number;
  readonly serialNumber: bigint;
  readonly account: bigint;
  readonly toVoucher: boolean;
};

/** Books a movement between a voucher and an account. @throws Refusal if the database declines it */
export async function postVoucher(tx: Queries, movement: VoucherMovement): Promise<void> {
  const { kind, id, bucket, serialNumber, account, toVoucher, amountMinor, now } = movement;
  const { originalId = null, reference = null } = movement;
  const booking = tx.query<{ outcome: string }>(sql`
select book_voucher(${kind}::entry_kind, ${id}, ${bucket}, ${serialNumber}, ${account}, ${toVoucher},
  ${amountMinor}, ${originalId}, ${reference}, ${newId(now)}, ${now}) as outcome`);
  await checkBooked(booking);
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
  throw declined(outcome as RefusalCode);
}

/** Returns the refusal of a movement, or of a voucher, in words of the books. */
export function declined(code: RefusalCode): Refusal {
  const message = DECLINED[code];
  return new Refusal(code, message === undefined ? {} : { message });
}

/** An amount of a voucher that has expired. */
export type Expiry = {
  readonly serialNumber: bigint;
  readonly id: string;
  readonly account: bigint;
  readonly amountMinor: bigint;
  readonly expiredAt: Date;
  /** The payment to a state that the amount is part of; null if there is none. */
  readonly escheatId: string | null;
};

/**
 * Locks vouchers of a bucket, and lists their expired amounts that were not given back, oldest first
 * (sql/012-vouchers.sql).
 */
export async function lockExpiries(
  tx: Queries,
  bucket: number,
  serials: readonly bigint[],
): Promise<Expiry[]> {
  const expiries = await tx.query<Omit<Expiry, 'escheatId'>>(sql`
select serial_number as "serialNumber", id, credit_account as account, amount_minor as "amountMinor",
  expired_at as "expiredAt"
from lock_expiries(${bucket}, ${plainArray(serials)}::bigint[])`);
  // Read under the locks, in a statement of its own: the shard of the vouchers does not have it.
  const paid = await tx.query<{ expiryId: string; escheatId: string }>(sql`
select expiry_id as "expiryId", escheat_id as "escheatId" from escheated_expiries
where expiry_id = any (${plainArray(expiries.map(({ id }) => id))}::uuid[])`);
  const escheats = new Map(paid.map(({ expiryId, escheatId }) => [expiryId, escheatId]));
  return expiries.map((each) => ({ ...each, escheatId: escheats.get(each.id) ?? null }));
}
