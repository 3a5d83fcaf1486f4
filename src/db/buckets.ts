import { hash } from 'node:crypto';
import type { Queries } from './pool.ts';
import { sql } from './sql.ts';

/**
 * The place of rows. A voucher has a slot, which follows both from its code and from its serial number. Slots
 * are distributed over the buckets of the database. A single server has one bucket.
 */

/**
 * The number of slots of codes. A slot cannot be split over shards, so this limits the number of servers. A
 * slot reveals six of the forty bits of a code to a thief of the database. It is part of every printed serial
 * number, so it never changes.
 */
export const SLOTS = 64;

export type Buckets = {
  /** The bucket of each position, in order. */
  readonly all: readonly number[];
  /** Whether there are several, so that a reference and its voucher may be on different servers. */
  readonly isSharded: boolean;
  ofSlot(slot: number): number;
  ofSerial(serialNumber: bigint): number;
  /** Returns the bucket of a merchant's rows that belong to no voucher. */
  ofMerchant(merchantId: number): number;
  /** Returns the bucket of the claim of a reference. */
  ofReference(merchantId: number, operation: string, reference: string): number;
};

/** Returns these buckets with their functions. @param all by position; `[0]` on one server */
export function bucketsOf(all: readonly number[]): Buckets {
  const at = (position: number) => all[position % all.length] as number;
  return {
    all,
    isSharded: all.length > 1,
    ofSlot: at,
    ofSerial: (serialNumber) => at(slotOfSerial(serialNumber)),
    ofMerchant: at,
    ofReference: (merchantId, operation, reference) =>
      all.length === 1 ? (all[0] as number) : at(slotOfReference(merchantId, operation, reference)),
  };
}

/** Reads the buckets of the database: one, or several if it is distributed. */
export async function readBuckets(db: Queries): Promise<Buckets> {
  const rows = await db.query<{ bucket: number }>(sql`select bucket from bucket_positions order by position`);
  return bucketsOf(rows.map(({ bucket }) => bucket));
}

/** Returns the slot of a serial number: the remainder of its division by the number of slots. */
export function slotOfSerial(serialNumber: bigint): number {
  return Number(serialNumber % BigInt(SLOTS));
}

/** Returns the serial number for a voucher number and a slot. */
export function serialOf(voucherNumber: bigint, slot: number): bigint {
  return voucherNumber * BigInt(SLOTS) + BigInt(slot);
}

/** Returns the slot of a reference, like `slot_of_reference` in sql/citus/distribute.sql. */
function slotOfReference(merchantId: number, operation: string, reference: string): number {
  return Number.parseInt(hash('sha256', `${merchantId} ${operation} ${reference}`).slice(0, 2), 16) % SLOTS;
}
