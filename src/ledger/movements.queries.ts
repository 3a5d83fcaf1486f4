import { type Sql, sql } from '../db/sql.ts';

/** The functions of sql/015-booking.sql. */

/** A movement between two accounts, none of them a voucher or a reserve. */
export type Movement = {
  readonly kind: string;
  readonly id: string;
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  /** The owner of the float or settlement account; null where there is none. */
  readonly merchantId: number | null;
  /** The row that this one corrects. */
  readonly originalId?: string | null;
  readonly reference?: string | null;
  /** The id of a `float.low` event to be. */
  readonly eventId: string;
  readonly now: Date;
};

/** `outcome`: `ok`, or the code of a refusal. */
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

/** `outcome`: `ok`, or the code of a refusal. */
export function bookVoucher(movement: VoucherMovement): Sql {
  const { kind, id, bucket, serialNumber, account, toVoucher, amountMinor, eventId, now } = movement;
  return sql`
select book_voucher(${kind}::entry_kind, ${id}, ${bucket}, ${serialNumber}, ${account}, ${toVoucher},
  ${amountMinor}, ${movement.originalId ?? null}, ${movement.reference ?? null}, ${eventId},
    ${now}) as outcome`;
}

/** A row of the journal, by its id, whichever bucket it lies in. */
export function findEntry(id: string): Sql {
  return sql`
select j.id, j.kind, j.bucket, j.debit_account, j.credit_account, j.amount_minor, j.currency, j.merchant_id,
  j.serial_number, j.reference, j.original_id, (select min(a.decimals) from accounts a
    where a.currency = j.currency)
  as decimals
from journal j where j.id = ${id}::uuid`;
}

/** What has expired of a voucher and was not given back, oldest first (sql/012-vouchers.sql). */
export function listExpiries(bucket: number, serialNumber: bigint): Sql {
  return sql`select * from list_expiries(${bucket}, ${serialNumber})`;
}
