import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { decimalsOf } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { book, type Movement } from './functions.ts';
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

/** Books a movement between two accounts. @throws Refusal if the database declines it */
export async function post(tx: Queries, movement: Omit<Movement, 'eventId'>): Promise<void> {
  const eventId = newId(movement.now);
  await checkBooked(tx.query<{ outcome: string }>(book({ ...movement, eventId })));
}

/** A movement between a voucher and an account. */
type VoucherMovement = {
  readonly kind: string;
  readonly id: string;
  readonly bucket: number;
  readonly serialNumber: bigint;
  readonly account: bigint;
  readonly toVoucher: boolean;
  readonly amountMinor: bigint;
  readonly originalId?: string | null;
  readonly reference?: string | null;
  readonly now: Date;
};

/** Books a movement between a voucher and an account. @throws Refusal if the database declines it */
export async function postVoucher(tx: Queries, movement: VoucherMovement): Promise<void> {
  const { kind, id, bucket, serialNumber, account, toVoucher, amountMinor, now } = movement;
  const booking = tx.query<{ outcome: string }>(sql`
select book_voucher(${kind}::entry_kind, ${id}, ${bucket}, ${serialNumber}, ${account}, ${toVoucher},
  ${amountMinor}, ${movement.originalId ?? null}, ${movement.reference ?? null}, ${newId(now)}, ${now})
  as outcome`);
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
  const code = outcome as RefusalCode;
  const message = DECLINED[code];
  throw new Refusal(code, message === undefined ? {} : { message });
}
