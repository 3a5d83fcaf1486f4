import { type HotStatement, plainArray, type Sql, sql } from '../db/sql.ts';

/**
 * Inserts a merchant's accounts in a currency, and the operator's (merchant 0). Existing accounts do not
 * change.
 */
export function insertAccounts(merchantId: number, currency: string, decimals: number): Sql {
  return sql`
insert into accounts (kind, merchant_id, currency, decimals)
select k.kind, case when k.kind in ('FLOAT', 'SETTLEMENT') then ${merchantId}::int else 0 end,
  ${currency}, ${decimals}
from unnest(enum_range(null::account_kind)) as k (kind)
where k.kind <> 'RESERVE' and (${merchantId}::int > 0 or k.kind not in ('FLOAT', 'SETTLEMENT'))
on conflict do nothing`;
}

export function insertFloat(merchantId: number, currency: string): Sql {
  return sql`
insert into floats (account_id, merchant_id, currency, decimals)
select id, merchant_id, currency, decimals from accounts
where merchant_id = ${merchantId} and currency = ${currency} and kind = 'FLOAT'
on conflict do nothing`;
}

/**
 * Fails if nothing may be booked at this time: the clock of this process and that of the database differ, or
 * they were set back (sql/005-rules.sql).
 */
export function checkStamp(now: Date): Sql {
  return sql`select check_stamp(${now})`;
}

/** Returns the first and the last millisecond of a day in the zone of the books. */
export function findSpanOfDay(day: string): Sql {
  return sql`
select ${day}::date::timestamp at time zone zone as "startsAt",
  (${day}::date + 1)::timestamp at time zone zone - interval '1 millisecond' as "endsAt"
from books`;
}

/** Returns the zone of the days that have not begun. */
export const findBooksZone = sql`select zone from books`;

/** Returns the day of a time in the zone of the books. */
export function findToday(now: Date): Sql {
  return sql`select (${now}::timestamptz at time zone zone)::date::text as day from books`;
}

export type AccountKind =
  | 'FUNDING'
  | 'TRANSIT'
  | 'FLOAT'
  | 'SETTLEMENT'
  | 'FEES'
  | 'VAT'
  | 'GOODWILL'
  | 'UNCLAIMED'
  | 'BREAKAGE';

/** Finds the number of an account. @param merchantId 0 for the operator's accounts */
export function findAccount(merchantId: number, currency: string, kind: AccountKind): Sql {
  return sql`
select id from accounts
where merchant_id = ${merchantId} and currency = ${currency} and kind = ${kind}::account_kind`;
}

/** A movement of a float whose balance the caller changes (sql/012-vouchers.sql). */
export type Posting = {
  readonly id: string;
  readonly kind: 'TOP_UP' | 'HOLD' | 'HOLD_RELEASE';
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  readonly merchantId: number;
  readonly reference?: string | undefined;
  readonly now: Date;
};

export function insertPosting(posting: Posting): Sql {
  const { id, kind, debit, credit, amountMinor, merchantId, reference, now } = posting;
  return sql`
select post(${id}, ${kind}::entry_kind, ${debit}, ${credit}, ${amountMinor}, ${merchantId},
  ${reference ?? null}, ${now})`;
}

/** Takes an amount from a float for a hold. `done` is false if the float is too low. */
export function debitFloat(accountId: bigint, amountMinor: bigint, lowId: string, now: Date): Sql {
  return sql`select debit_float(${accountId}, ${amountMinor}, ${lowId}, ${now}) as done`;
}

/** The functions of sql/015-booking.sql. */

/** A movement between two accounts other than vouchers and reserves. */
export type Movement = {
  readonly kind: string;
  readonly id: string;
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  /** The owner of the float or settlement account; null if there is none. */
  readonly merchantId: number | null;
  /** The row that this one corrects. */
  readonly originalId?: string | null;
  readonly reference?: string | null;
  /** The id of a new `float.low` event. */
  readonly eventId: string;
  readonly now: Date;
};

/** Books a movement. `outcome` is `ok`, or the code of a refusal. */
export function book(movement: Movement): Sql {
  const { kind, id, debit, credit, amountMinor, merchantId, eventId, now } = movement;
  return sql`
select book(${kind}::entry_kind, ${id}, ${debit}, ${credit}, ${amountMinor}, ${merchantId},
  ${movement.originalId ?? null}, ${movement.reference ?? null}, ${eventId}, ${now}) as outcome`;
}

/** A movement between a voucher and an account. */
export type VoucherMovement = {
  readonly kind: string;
  readonly id: string;
  readonly bucket: number;
  readonly serialNumber: bigint;
  readonly account: bigint;
  readonly toVoucher: boolean;
  readonly amountMinor: bigint;
  readonly originalId?: string | null;
  readonly reference?: string | null;
  readonly eventId: string;
  readonly now: Date;
};

/** Books a movement of a voucher. `outcome` is `ok`, or the code of a refusal. */
export function bookVoucher(movement: VoucherMovement): Sql {
  const { kind, id, bucket, serialNumber, account, toVoucher, amountMinor, eventId, now } = movement;
  return sql`
select book_voucher(${kind}::entry_kind, ${id}, ${bucket}, ${serialNumber}, ${account}, ${toVoucher},
  ${amountMinor}, ${movement.originalId ?? null}, ${movement.reference ?? null}, ${eventId}, ${now})
  as outcome`;
}

/** Finds a row of the journal by its id, in any bucket. */
export function findEntry(id: string): Sql {
  return sql`
select j.id, j.kind, j.bucket, j.debit_account, j.credit_account, j.amount_minor, j.currency, j.merchant_id,
  j.serial_number, j.reference, j.original_id,
  (select min(a.decimals) from accounts a where a.currency = j.currency) as decimals
from journal j where j.id = ${id}::uuid`;
}

export type ExpiryRow = {
  readonly serial_number: bigint;
  readonly id: string;
  readonly credit_account: bigint;
  readonly amount_minor: bigint;
  readonly occurred_at: Date;
};

/**
 * Locks vouchers of a bucket, and lists their expired amounts that were not given back, oldest first
 * (sql/012-vouchers.sql).
 */
export function lockExpiries(bucket: number, serials: readonly bigint[]): Sql {
  return sql`select * from lock_expiries(${bucket}, ${plainArray(serials)}::bigint[])`;
}

/** Returns which expired amounts out of a list were paid to a state. */
export function findEscheated(expiryIds: readonly string[]): Sql {
  return sql`
select expiry_id, escheat_id from escheated_expiries
where expiry_id = any (${plainArray(expiryIds)}::uuid[])`;
}

/** The functions of sql/008-claims.sql. */
export const FIND_VOUCHERS: HotStatement = {
  name: 'find-vouchers',
  text: 'select * from find_vouchers($1, $2, $3)',
};

export const CLAIM: HotStatement = { name: 'claim', text: 'select * from claim($1, $2, $3, $4, $5, $6, $7)' };

export const VOID_TRANSACTION: HotStatement = {
  name: 'void-transaction',
  text: 'select void_transaction($1, $2, $3) as done',
};

export const REASSIGN_CLAIM: HotStatement = {
  name: 'reassign-claim',
  text: 'select reassign_claim($1, $2, $3, $4, $5, $6, $7, $8) as done',
};

/** Finds a merchant's transaction without a reference by its id. It asks every shard. */
export function findWithoutReference(merchantId: number, id: string): Sql {
  return sql`
select id, bucket from journal
where merchant_id = ${merchantId} and id = uuid_from(${id}) and kind in ('ACTIVATION', 'REDEMPTION')
  and reference is null and original_id is null and batch_id is null`;
}

export function claimOne(claim: {
  readonly bucket: number;
  readonly merchantId: number;
  readonly operation: string;
  readonly reference: string;
  readonly id: string;
  readonly fingerprint: string;
}): Sql {
  const { bucket, merchantId, operation, reference, id, fingerprint } = claim;
  return sql`
select * from claim(${bucket}, ${operation}::operation, array[${merchantId}::int], array[${reference}::text],
  array[${id}::uuid], array[null::bigint], array[${fingerprint}::text])`;
}

/**
 * They lock a float while a worker commits, which all activations of a merchant wait for. Their connections
 * are separate, so that nothing else waits with them.
 */
export const HOLD_FLOATS: HotStatement = {
  name: 'hold-floats',
  text: 'select * from hold_floats($1, $2, $3, $4, $5, $6, $7, $8, $9)',
  isSlow: true,
};

export const END_HOLDS: HotStatement = { name: 'end-holds', text: 'select end_holds($1, $2)', isSlow: true };

export const RELEASE_HOLDS: HotStatement = {
  name: 'release-holds',
  text: 'select release_holds($1, $2, $3)',
  isSlow: true,
};

export function listOldHolds(before: Date, count: number): Sql {
  return sql`
select id, merchant_id, bucket, serial_number from float_holds
where ended_at is null and held_at < ${before} order by held_at limit ${count}`;
}
