import { randomCode, randomPin } from '../credentials.ts';
import { bucketsOf, serialOf } from '../db/buckets.ts';
import { bytesArray, plainArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { newId } from '../ledger/id.ts';

/** The wanted vouchers, one for each number. */
export type RowsWanted = {
  /** The numbers of vouchers. A serial number is composed of a number and the slot of the code. */
  readonly numbers: readonly bigint[];
  /** The buckets by position. */
  readonly buckets: readonly number[];
  /** The time of the activations. */
  readonly now: Date;
  /** The codes, and their PINs; by default, and in place of null, they are drawn. */
  readonly codes?: readonly string[];
  readonly pins?: readonly (string | null)[];
};

/** Sealed vouchers as the parallel array parameters of `createVouchers`. */
export type MadeRows = {
  /** The key that sealed them. */
  readonly keyId: string;
  /** The time of the activations. */
  readonly at: Date;
  readonly count: number;
  readonly buckets: string;
  readonly serials: string;
  readonly codeKeys: string;
  readonly pinKeys: string;
  readonly sealed: string;
  readonly entryIds: string;
  /** The greatest of the entry ids. */
  readonly newestId: string;
};

/** Draws distinct codes. */
export function drawCodes(count: number): Set<string> {
  const codes = new Set<string>();
  while (codes.size < count) codes.add(randomCode());
  return codes;
}

/** Gives each code a PIN and a number, and seals them. */
export function makeRows(keys: KeyRing, { numbers, buckets: all, now, codes, pins }: RowsWanted): MadeRows {
  const buckets = bucketsOf(all);
  const vouchers = [...(codes ?? drawCodes(numbers.length))].map((code, index) => {
    const slot = keys.slotOf(code);
    const serial = serialOf(numbers[index] as bigint, slot);
    const pin = pins?.[index] ?? randomPin();
    return {
      bucket: buckets.ofSlot(slot),
      serial,
      codeKey: keys.codeKey(code),
      pinKey: keys.pinKey(code, pin),
      sealed: keys.seal(serial, code, pin),
    };
  });
  const entryIds = vouchers.map(() => newId(now));
  return {
    keyId: keys.current,
    at: now,
    count: vouchers.length,
    buckets: plainArray(vouchers.map(({ bucket }) => bucket)),
    serials: plainArray(vouchers.map(({ serial }) => serial)),
    codeKeys: plainArray(vouchers.map(({ codeKey }) => codeKey)),
    pinKeys: plainArray(vouchers.map(({ pinKey }) => pinKey)),
    sealed: bytesArray(vouchers.map(({ sealed }) => sealed)),
    entryIds: plainArray(entryIds),
    newestId: entryIds.at(-1) as string,
  };
}
