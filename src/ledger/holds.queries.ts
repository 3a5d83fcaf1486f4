import { type Sql, sql } from '../db/sql.ts';

export type NewHold = {
  readonly id: string;
  readonly accountId: bigint;
  readonly merchantId: number;
  readonly amountMinor: bigint;
  readonly bucket: number;
  readonly serialNumber: bigint;
  readonly entryId: string;
  readonly now: Date;
};

/** Returns no row if the hold exists. */
export function insertHold(hold: NewHold): Sql {
  const { id, accountId, merchantId, amountMinor, bucket, serialNumber, entryId, now } = hold;
  return sql`
insert into float_holds (id, account_id, merchant_id, amount_minor, bucket, serial_number, entry_id, held_at)
values (${id}, ${accountId}, ${merchantId}, ${amountMinor}, ${bucket}, ${serialNumber}, ${entryId}, ${now})
on conflict do nothing returning id`;
}

export type HoldRow = {
  id: string;
  account_id: bigint;
  merchant_id: number;
  amount_minor: bigint;
  currency: string;
};

/**
 * No row comes back where the hold has ended before.
 * @param releaseId of the row that gives the money back; null where the activation was booked
 */
export function setHoldEnded(id: string, releaseId: string | null, now: Date): Sql {
  return sql`
update float_holds h set ended_at = ${now}, release_id = ${releaseId}::uuid from floats f
where h.id = ${id} and h.ended_at is null and f.account_id = h.account_id
returning h.id, h.account_id, h.merchant_id, h.amount_minor, f.currency`;
}

export function listOldHolds(before: Date, count: number): Sql {
  return sql`
select id, bucket, serial_number from float_holds
where ended_at is null and held_at < ${before} order by held_at limit ${count}`;
}
