import { audit, type Change } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { holdKeyRing } from '../db/key-ring.ts';
import type { Queries } from '../db/pool.ts';
import { retrying } from '../db/retry.ts';
import { plainArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import type { Money } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { randomCode, randomPin } from '../secrets.ts';
import {
  closeReplaced,
  findCodeKeys,
  findVoucher,
  insertReplacement,
  insertReplacementEntry,
  listVoucherEntries,
  lockVoucher,
  nextSerial,
  resetPinGuard,
  setBlocked,
  setExpiry,
} from './operate.queries.ts';

/** What the operator can do to a single voucher. Each returns without a word, or refuses and has changed nothing. */

type VoucherState = 'INACTIVE' | 'ACTIVE' | 'REDEEMED' | 'BLOCKED' | 'EXPIRED' | 'CANCELED' | 'REPLACED';

export type VoucherInfo = {
  readonly serialNumber: bigint;
  /** The full code: every door masks it. The PIN is not read at all. */
  readonly code: string;
  readonly state: VoucherState;
  /** The merchant that generated it. */
  readonly merchantId: number;
  readonly batch: string;
  readonly batchReference: string;
  readonly product: string;
  readonly currency: string;
  readonly balance: Money;
  /** The value at activation; null before it. */
  readonly value: Money | null;
  readonly activatedAt: Date | null;
  readonly expiresAt: Date;
  readonly blockedAt: Date | null;
  /** Wrong PINs in a row. */
  readonly wrongPins: number;
  readonly pinLocked: 'no' | 'until unlocked' | Date;
  readonly replacedBy: bigint | null;
  /** Newest first. */
  readonly entries: readonly {
    readonly transactionId: string;
    readonly kind: string;
    readonly amount: Money;
    readonly timestamp: Date;
    readonly merchantId: number | null;
    readonly reference: string;
  }[];
};

type VoucherRow = {
  serial_number: bigint;
  sealed: Buffer;
  value_minor: bigint | null;
  balance_minor: bigint;
  activated_at: Date | null;
  expires_at: Date;
  blocked_at: Date | null;
  closed: 'CANCELED' | 'REPLACED' | null;
  replaced_by: bigint | null;
  wrong_pins: number;
  pin_locked_for_good: boolean | null;
  pin_locked_until: Date | null;
  merchant_id: number;
  transaction_id: string;
  reference: string;
  currency: string;
  decimals: number;
  product: string;
};

type Entry = {
  id: string;
  kind: string;
  amount_minor: bigint;
  occurred_at: Date;
  merchant_id: number | null;
  reference: string;
};

/** A voucher by its serial number. @throws Refusal `14` for an unknown one, or one of a batch that is not completed */
export async function showVoucher({ db, keys, clock }: Service, serialNumber: bigint): Promise<VoucherInfo> {
  const [row] = await db.query<VoucherRow>(findVoucher(serialNumber));
  if (!row) throw unknownVoucher();
  const entries = await db.query<Entry>(listVoucherEntries(serialNumber));
  const { decimals } = row;
  const now = clock();
  return {
    serialNumber,
    code: keys.open(serialNumber, row.sealed).code,
    state: stateOf(row, now),
    merchantId: row.merchant_id,
    batch: row.transaction_id,
    batchReference: row.reference,
    product: row.product,
    currency: row.currency,
    balance: { minor: row.balance_minor, decimals },
    value: row.value_minor === null ? null : { minor: row.value_minor, decimals },
    activatedAt: row.activated_at,
    expiresAt: row.expires_at,
    blockedAt: row.blocked_at,
    wrongPins: row.wrong_pins,
    pinLocked: pinLock(row, now),
    replacedBy: row.replaced_by,
    entries: entries.map((entry) => ({
      transactionId: entry.id,
      kind: entry.kind,
      amount: { minor: entry.amount_minor, decimals },
      timestamp: entry.occurred_at,
      merchantId: entry.merchant_id,
      reference: entry.reference,
    })),
  };
}

/** Derived from what is stored, in the order in which a redemption would be refused for it. */
function stateOf(row: VoucherRow, now: Date): VoucherState {
  if (row.closed) return row.closed;
  if (row.blocked_at) return 'BLOCKED';
  if (row.expires_at <= now) return 'EXPIRED';
  if (!row.activated_at) return 'INACTIVE';
  return row.balance_minor === 0n ? 'REDEEMED' : 'ACTIVE';
}

function pinLock(row: VoucherRow, now: Date): VoucherInfo['pinLocked'] {
  if (row.pin_locked_for_good) return 'until unlocked';
  return row.pin_locked_until && row.pin_locked_until > now ? row.pin_locked_until : 'no';
}

/** Blocks a voucher: nothing is spent from it or activated (`43`) until it is unblocked. @throws Refusal `14`, `44` */
export async function blockVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  const now = operator.service.clock();
  await change(operator, serialNumber, 'voucher.block', async (tx, { blocked_at }) => {
    await tx.query(setBlocked(serialNumber, now));
    return { before: { blockedAt: blocked_at }, after: { blockedAt: blocked_at ?? now } };
  });
}

/** Ends a block. @throws Refusal `14`, `44` */
export async function unblockVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  await change(operator, serialNumber, 'voucher.unblock', async (tx, { blocked_at }) => {
    await tx.query(setBlocked(serialNumber, null));
    return { before: { blockedAt: blocked_at }, after: { blockedAt: null } };
  });
}

/** Forgets wrong PINs and ends their lock, also the one that ends by no time. @throws Refusal `14`, `44` */
export async function unlockPin(operator: Operator, serialNumber: bigint): Promise<void> {
  await change(operator, serialNumber, 'voucher.unlock-pin', async (tx, { wrong_pins }) => {
    await tx.query(resetPinGuard(serialNumber));
    return { before: { wrongPins: wrong_pins }, after: { wrongPins: 0 } };
  });
}

/**
 * Extends a voucher, also one that has expired.
 * @param expiresAt later than now and than the expiry it has
 * @throws Refusal `14`, `44`, `17`
 */
export async function extendVoucher(operator: Operator, serialNumber: bigint, expiresAt: Date): Promise<void> {
  await change(operator, serialNumber, 'voucher.extend', async (tx, { expires_at }) => {
    if (expiresAt <= operator.service.clock() || expiresAt <= expires_at) {
      throw new Refusal('17', {
        message: `Invalid expiry date: it is ${expires_at.toISOString()} now, and can only be extended`,
      });
    }
    await tx.query(setExpiry(serialNumber, expiresAt));
    return { before: { expiresAt: expires_at }, after: { expiresAt } };
  });
}

/**
 * Replaces a voucher by a new one with a code and PIN of its own, for a card that was lost or seen: balance, value,
 * activation and expiry go over, wrong PINs and a block do not; the old one is closed for good. The new voucher belongs to the
 * same batch, so the merchant gets its code by downloading the batch, where it stands in the place of the old one.
 * @returns the new serial number
 * @throws Refusal `14`, `44`
 */
export async function replaceVoucher(operator: Operator, serialNumber: bigint): Promise<bigint> {
  const { service } = operator;
  let replacedBy = 0n;
  await change(operator, serialNumber, 'voucher.replace', async (tx, voucher) => {
    replacedBy = await insertNew(service, tx, serialNumber);
    await tx.query(closeReplaced(serialNumber, replacedBy));
    if (voucher.balance_minor > 0n) {
      const now = service.clock();
      const amount = { minor: voucher.balance_minor, currency: voucher.currency };
      await tx.query(insertReplacementEntry(newId(now), serialNumber, replacedBy, amount, now));
    }
    return { before: { closed: null }, after: { closed: 'REPLACED', replacedBy } };
  });
  return replacedBy;
}

/** A new voucher in the place of another one. A code that exists already is drawn again. */
async function insertNew({ keys }: Service, tx: Queries, replaced: bigint): Promise<bigint> {
  await holdKeyRing(tx, keys);
  for (;;) {
    const [next] = await tx.query<{ serial_number: bigint }>(nextSerial());
    const serial = next?.serial_number as bigint;
    const code = randomCode();
    const older = keys.olderCodeKeys(code);
    if (older.length > 0 && (await tx.query(findCodeKeys(plainArray(older)))).length > 0) continue;
    const pin = randomPin();
    const secrets = {
      codeKey: keys.codeKey(code),
      pinKey: keys.pinKey(code, pin),
      sealed: keys.seal(serial, code, pin),
    };
    if ((await tx.query(insertReplacement(serial, replaced, secrets))).length > 0) return serial;
  }
}

/** A voucher of a batch that is not completed cannot be seen, by the operator either. */
function unknownVoucher(): Refusal {
  return new Refusal('14', { message: 'Invalid voucher: no completed batch has this serial number' });
}

type Locked = {
  balance_minor: bigint;
  expires_at: Date;
  closed: string | null;
  currency: string;
  blocked_at: Date | null;
  wrong_pins: number;
};

/** Runs a change under the voucher's lock, and tells the audit of it. What is closed is closed for good. */
async function change(
  operator: Operator,
  serialNumber: bigint,
  action: string,
  run: (tx: Queries, voucher: Locked) => Promise<Pick<Change, 'before' | 'after'>>,
): Promise<void> {
  await retrying(() =>
    operator.service.db.transaction(async (tx) => {
      const [voucher] = await tx.query<Locked>(lockVoucher(serialNumber));
      if (!voucher) throw unknownVoucher();
      if (voucher.closed) throw new Refusal('44', { message: 'Voucher canceled or replaced: that is final' });
      const told = await run(tx, voucher);
      await audit(tx, operator, { action, subject: `voucher ${serialNumber}`, ...told });
    }),
  );
}
