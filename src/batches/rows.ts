import { randomCode, randomPin } from '../credentials.ts';
import { bucketsOf, serialOf } from '../db/buckets.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { newId } from '../ledger/id.ts';

/**
 * Vouchers and their activations as rows in the binary form of COPY, ready to be sent.
 *
 * All rows of a table are equally long and differ in a few fields only: one is written as a pattern,
 * repeated, and the fields that differ are written over. That takes a tenth of the time of writing rows
 * as text, and the database reads them faster too.
 */

/** The wanted rows: a voucher for each number, and its activation if it is active from the start. */
export type RowsWanted = {
  /** A serial number is made of a number and the slot of the code. */
  readonly numbers: readonly bigint[];
  /** The buckets by position. */
  readonly buckets: readonly number[];
  readonly batchId: number;
  readonly expiresAt: Date;
  /** The time of the activations. */
  readonly now: Date;
  readonly activation: Activation | null;
};

type Activation = {
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly merchantId: number;
  readonly reserveAccount: bigint;
};

/** Rows of equal length, after the head of a COPY. */
export type Rows = { readonly bytes: Uint8Array; readonly rowBytes: number };
export type MadeRows = {
  /** The key that they are sealed under. */
  readonly keyId: string;
  /** The time of the activations. */
  readonly at: Date;
  readonly count: number;
  /** The code keys, in the order of the rows. */
  readonly codeKeys: readonly string[];
  readonly vouchers: Rows;
  readonly entries: Rows | null;
};

const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const TAIL = int16(-1);
/** PostgreSQL counts microseconds from the year 2000. */
const EPOCH_MS = Date.UTC(2000, 0, 1);
const UUID_BYTES = 16;

/** The first rows as one whole COPY, in parts to be sent one after the other. */
export function firstRows({ bytes, rowBytes }: Rows, count: number): Uint8Array[] {
  return [bytes.subarray(0, HEAD.length + count * rowBytes), TAIL];
}

/** Removes the rows of some vouchers; the last ones take their places. */
export function withoutRows(made: MadeRows, codeKeys: ReadonlySet<string>): MadeRows {
  if (codeKeys.size === 0) return made;
  const kept = [...made.codeKeys];
  for (let at = kept.length - 1; at >= 0; at--) {
    if (!codeKeys.has(kept[at] as string)) continue;
    const last = kept.pop() as string;
    if (at === kept.length) continue;
    kept[at] = last;
    for (const rows of [made.vouchers, made.entries]) {
      if (!rows) continue;
      const start = (row: number) => HEAD.length + row * rows.rowBytes;
      rows.bytes.copyWithin(start(at), start(kept.length), start(kept.length + 1));
    }
  }
  return { ...made, count: kept.length, codeKeys: kept };
}

/**
 * Draws a code and a PIN for each number, seals them, and writes the rows in the order of
 * `copyVouchers` and `copyEntries`.
 */
export function makeRows(keys: KeyRing, wanted: RowsWanted): MadeRows {
  const count = wanted.numbers.length;
  const buckets = bucketsOf(wanted.buckets);
  const codes = new Set<string>();
  while (codes.size < count) codes.add(randomCode());
  // The length of a sealed voucher depends only on the id of the key.
  const sealedBytes = keys.seal(0n, randomCode(), randomPin()).length;
  const vouchers = repeat(voucherFields(wanted, sealedBytes), count);
  const entries =
    wanted.activation && repeat(entryFields(wanted.batchId, wanted.activation, wanted.now), count);
  const codeKeys: string[] = [];
  for (const code of codes) {
    const row = codeKeys.length;
    const slot = keys.slotOf(code);
    const serial = serialOf(wanted.numbers[row] as bigint, slot);
    const bucket = buckets.ofSlot(slot);
    const pin = randomPin();
    const codeKey = keys.codeKey(code);
    codeKeys.push(codeKey);
    const { bytes } = vouchers;
    const at = (field: number) => vouchers.at(row, field);
    bytes.writeBigInt64BE(serial, at(0));
    bytes.writeInt32BE(bucket, at(2));
    bytes.write(codeKey, at(3), 'hex');
    bytes.write(keys.pinKey(code, pin), at(4), 'hex');
    keys.seal(serial, code, pin).copy(bytes, at(5));
    if (entries) {
      entries.bytes.write(newId(wanted.now).replaceAll('-', ''), entries.at(row, 0), 'hex');
      entries.bytes.writeBigInt64BE(serial, entries.at(row, 3));
      entries.bytes.writeBigInt64BE(serial, entries.at(row, 7));
      entries.bytes.writeInt32BE(bucket, entries.at(row, 9));
    }
  }
  return { keyId: keys.current, at: wanted.now, count, codeKeys, vouchers, entries };
}

/** In the order of `copyVouchers`; fields that differ from row to row are empty. */
function voucherFields(
  { batchId, expiresAt, activation, now }: RowsWanted,
  sealedBytes: number,
): (Buffer | null)[] {
  return [
    int64(0n),
    int32(batchId),
    int32(0),
    Buffer.alloc(UUID_BYTES),
    Buffer.alloc(UUID_BYTES),
    Buffer.alloc(sealedBytes),
    timestamp(expiresAt),
    activation && int64(activation.amountMinor),
    int64(activation?.amountMinor ?? 0n),
    activation && timestamp(now),
  ];
}

/** In the order of `copyEntries`. */
function entryFields(batchId: number, activation: Activation, now: Date): Buffer[] {
  return [
    Buffer.alloc(UUID_BYTES),
    Buffer.from('ACTIVATION'),
    int64(activation.reserveAccount),
    int64(0n),
    int64(activation.amountMinor),
    Buffer.from(activation.currency),
    int32(activation.merchantId),
    int64(0n),
    int32(batchId),
    int32(0),
    timestamp(now),
  ];
}

/** Repeats a row, and says where its fields begin. */
function repeat(fields: readonly (Buffer | null)[], count: number) {
  const parts: Buffer[] = [int16(fields.length)];
  const starts: number[] = [];
  let rowBytes = 2;
  for (const field of fields) {
    parts.push(int32(field?.length ?? -1), field ?? Buffer.alloc(0));
    starts.push(rowBytes + 4);
    rowBytes += 4 + (field?.length ?? 0);
  }
  // A buffer of its own can be passed between threads without a copy.
  const bytes = Buffer.from(new ArrayBuffer(HEAD.length + count * rowBytes));
  HEAD.copy(bytes);
  bytes.fill(Buffer.concat(parts), HEAD.length);
  return {
    bytes,
    rowBytes,
    at: (row: number, field: number) => HEAD.length + row * rowBytes + (starts[field] as number),
  };
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function timestamp(time: Date): Buffer {
  return int64(BigInt(time.getTime() - EPOCH_MS) * 1000n);
}
