import { plainArray, type Sql, sql } from '../db/sql.ts';

/** The calls of the functions of sql/ that several parts share. Only these functions move money. */

/**
 * Fails if nothing may be booked at this time: the clock of this process and that of the database differ, or
 * they were set back (sql/005-rules.sql).
 */
export function checkStamp(now: Date): Sql {
  return sql`select check_stamp(${now})`;
}

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

export type ExpiryRow = {
  readonly serial_number: bigint;
  readonly id: string;
  readonly credit_account: bigint;
  readonly amount_minor: bigint;
  readonly expired_at: Date;
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
