import { audit, type Change } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { newId } from '../ledger/id.ts';
import { checkBooked, getAccount, postVoucher } from '../ledger/journal.ts';
import { type ExpiryRow, findEscheated, lockExpiries } from '../ledger/queries.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { type Money, toSum } from '../money.ts';
import type { Agreed, Asked } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { insertReplacement } from './look-up.ts';
import {
  cancelInactive,
  findVoucher,
  listVoucherEntries,
  lockVoucher,
  reservePrice,
  resetPin,
  setBlock,
  setExpiry,
} from './queries.ts';

/**
 * The changes that an operator can make to a single voucher. Each one happens completely, or is declined and
 * changes nothing.
 */

export const VOUCHER_STATES = [
  'INACTIVE',
  'ACTIVE',
  'REDEEMED',
  'BLOCKED',
  'EXPIRED',
  'CANCELED',
  'REPLACED',
] as const;

export type VoucherState = (typeof VOUCHER_STATES)[number];

export type VoucherInfo = {
  readonly serialNumber: bigint;
  /** The full code: every door masks it. The PIN is not read. */
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
  /** The number of consecutive wrong PINs. */
  readonly wrongPins: number;
  readonly pinLocked: 'no' | 'until unlocked' | Date;
  readonly replacedBy: bigint | null;
  /** The merchant whose float paid for its value; null if nobody has. */
  readonly payerId: number | null;
  /** Newest first. */
  readonly entries: readonly {
    readonly transactionId: string;
    readonly kind: string;
    /** The change of the balance; null if it moved the price of a voucher that is not active. */
    readonly change: Money | null;
    readonly timestamp: Date;
    readonly merchantId: number | null;
    /** The merchant's reference; null if it gave none. */
    readonly reference: string | null;
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
  payer_id: number | null;
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
  change_minor: bigint | null;
  occurred_at: Date;
  merchant_id: number | null;
  reference: string | null;
};

/**
 * Returns a voucher by its serial number.
 * @throws Refusal `14` if it is unknown, or its batch is not complete
 */
export async function showVoucher(
  { db, buckets, keys, clock }: Service,
  serialNumber: bigint,
): Promise<VoucherInfo> {
  const bucket = buckets.ofSerial(serialNumber);
  const now = clock();
  const [row] = await db.query<VoucherRow & { state: VoucherState }>(findVoucher(bucket, serialNumber, now));
  if (!row) throw unknownVoucher();
  const entries = await db.query<Entry>(listVoucherEntries(bucket, serialNumber));
  const { decimals } = row;
  return {
    serialNumber,
    code: keys.open(serialNumber, row.sealed).code,
    state: row.state,
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
    payerId: row.payer_id,
    entries: entries.map((entry) => ({
      transactionId: entry.id,
      kind: entry.kind,
      change: entry.change_minor === null ? null : { minor: entry.change_minor, decimals },
      timestamp: entry.occurred_at,
      merchantId: entry.merchant_id,
      reference: entry.reference,
    })),
  };
}

function pinLock(row: VoucherRow, now: Date): VoucherInfo['pinLocked'] {
  if (row.pin_locked_for_good) return 'until unlocked';
  return row.pin_locked_until && row.pin_locked_until > now ? row.pin_locked_until : 'no';
}

/**
 * Blocks a voucher: it cannot be spent or activated (`43`) until it is unblocked.
 * @throws Refusal `14`, `44`
 */
export async function blockVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  const now = operator.service.clock();
  await change(operator, serialNumber, 'voucher.block', async (tx, { bucket, blocked_at }) => {
    await tx.query(setBlock(bucket, serialNumber, now));
    return { before: { blockedAt: blocked_at }, after: { blockedAt: blocked_at ?? now } };
  });
}

/** Unblocks a voucher. @throws Refusal `14`, `44` */
export async function unblockVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  await change(operator, serialNumber, 'voucher.unblock', async (tx, { bucket, blocked_at }) => {
    await tx.query(setBlock(bucket, serialNumber, null));
    return { before: { blockedAt: blocked_at }, after: { blockedAt: null } };
  });
}

/** Resets the count of wrong PINs and ends the lock. @throws Refusal `14`, `44` */
export async function unlockPin(operator: Operator, serialNumber: bigint): Promise<void> {
  await change(operator, serialNumber, 'voucher.unlock-pin', async (tx, { bucket, wrong_pins }) => {
    await tx.query(resetPin(bucket, serialNumber));
    return { before: { wrongPins: wrong_pins }, after: { wrongPins: 0 } };
  });
}

/**
 * Extends a voucher, even one that has expired: what its expiry moved comes back from where it went. That is
 * its balance or, if it was not active, its price, which the float of its merchant pays again.
 * @param expiresAt later than now and than the current expiry
 * @throws Refusal `14`, `44`, `17`; `50` if the float does not cover it; `51` if its money was paid to a
 *   state
 */
export async function extendVoucher(
  operator: Operator,
  serialNumber: bigint,
  expiresAt: Date,
): Promise<void> {
  await change(operator, serialNumber, 'voucher.extend', async (tx, voucher) => {
    const { bucket, expires_at, currency, decimals } = voucher;
    if (expiresAt <= operator.service.clock() || expiresAt <= expires_at) {
      throw new Refusal('17', {
        message: `Invalid expiry date: the voucher is valid until ${expires_at.toISOString()}; name a later date`,
      });
    }
    const reinstated = await reinstate(operator, tx, bucket, serialNumber);
    const reserved = await reserveAgain(operator, tx, bucket, serialNumber);
    const minor = reinstated.minor + reserved;
    const back = minor > 0n && { reinstated: reinstated.ids, amount: toSum(currency, { minor, decimals }) };
    const now = operator.service.clock();
    await tx.query(setExpiry(bucket, serialNumber, expiresAt, newId(now), now));
    return {
      before: { expiresAt: expires_at },
      after: { expiresAt, ...back },
      moved: back ? [{ currency, minor }] : [],
    };
  });
}

/** Gives back the expired amounts of a voucher: a REINSTATEMENT for each EXPIRY. @returns their sum */
async function reinstate({ service }: Operator, tx: Queries, bucket: number, serialNumber: bigint) {
  const expiries = await tx.query<ExpiryRow>(lockExpiries(bucket, [serialNumber]));
  const paid = await tx.query<{ escheat_id: string }>(findEscheated(expiries.map(({ id }) => id)));
  if (paid[0])
    throw new Refusal('51', {
      message: `Insufficient balance: the money of the voucher was paid to a state (${paid[0].escheat_id})`,
    });
  for (const { id: originalId, credit_account: account, amount_minor: amountMinor } of expiries) {
    const now = service.clock();
    const movement = { kind: 'REINSTATEMENT', id: newId(now), bucket, serialNumber, account, now };
    await postVoucher(tx, { ...movement, toVoucher: true, amountMinor, originalId });
  }
  const minor = expiries.reduce((sum, { amount_minor }) => sum + amount_minor, 0n);
  return { minor, ids: expiries.map(({ id }) => id) };
}

/**
 * Takes the price of an inactive voucher again, if its expiry gave the price back.
 * @returns the price, or 0
 */
async function reserveAgain({ service }: Operator, tx: Queries, bucket: number, serialNumber: bigint) {
  const now = service.clock();
  const ids = { id: newId(now), eventId: newId(now) };
  const [taken] = await checkBooked(
    tx.query<{ outcome: string; taken_minor: bigint }>(reservePrice({ bucket, serialNumber, ...ids, now })),
  );
  return taken?.taken_minor ?? 0n;
}

/**
 * Replaces a voucher with a new code and PIN, for a card that was lost or seen. The new voucher takes over
 * balance, activation and expiry, but neither wrong PINs nor a block. The old one is closed permanently. The
 * new voucher belongs to the same batch: the merchant gets its code by downloading the batch. An expired
 * voucher must be extended first, since its expired amount can only be given back to the voucher itself.
 * @returns the new serial number
 * @throws Refusal `14`, `44`, `54`
 */
export async function replaceVoucher(operator: Operator, serialNumber: bigint): Promise<bigint> {
  const { service } = operator;
  let replacedBy = 0n;
  await change(operator, serialNumber, 'voucher.replace', async (tx, { bucket, expires_at }) => {
    if (expires_at <= service.clock())
      throw new Refusal('54', { message: 'Voucher expired: extend it first' });
    await holdKeyRing(tx, service.keys);
    replacedBy = await insertReplacement(service, tx, bucket, serialNumber);
    return {
      before: { closed: null },
      after: { closed: 'REPLACED', replacedBy },
      touches: [`voucher ${replacedBy}`],
    };
  });
  return replacedBy;
}

/** Returns the refusal of an unknown voucher. Even operators do not see vouchers of an incomplete batch. */
function unknownVoucher(): Refusal {
  return new Refusal('14', { message: 'Invalid voucher: no completed batch has this serial number' });
}

type Locked = {
  readonly bucket: number;
  readonly balance_minor: bigint;
  readonly expires_at: Date;
  readonly closed: string | null;
  readonly blocked_at: Date | null;
  readonly activated_at: Date | null;
  readonly payer_id: number | null;
  readonly wrong_pins: number;
  readonly currency: string;
  readonly decimals: number;
};

/**
 * Runs a change under the voucher's lock, with its entry in the audit. A closed voucher cannot be changed.
 */
async function change(
  operator: Operator,
  serialNumber: bigint,
  action: string,
  run: (tx: Queries, voucher: Locked) => Promise<Omit<Change, 'action' | 'subject'>>,
): Promise<void> {
  const { db, buckets } = operator.service;
  const bucket = buckets.ofSerial(serialNumber);
  await retrying(() =>
    db.transaction(async (tx) => {
      const [voucher] = await tx.query<Omit<Locked, 'bucket'>>(lockVoucher(bucket, serialNumber));
      if (!voucher) throw unknownVoucher();
      if (voucher.closed) throw new Refusal('44', { message: 'Voucher canceled or replaced: that is final' });
      const details = await run(tx, { bucket, ...voucher });
      await audit(tx, operator, { action, subject: `voucher ${serialNumber}`, ...details });
    }),
  );
}

/**
 * Cancels a voucher permanently: its balance goes back to the float that paid for it (CANCELLATION). Its
 * redemptions remain. If it is not active, its price goes back (RELEASE); if nobody has paid for it, nothing
 * moves.
 * @throws Refusal `14`, `44`, `54`; `42` if its balance is 0; `13` if the float would exceed its maximum
 */
export async function cancelVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  const { service } = operator;
  await change(operator, serialNumber, 'voucher.cancel', async (tx, voucher) => {
    const { bucket, balance_minor: minor, payer_id: merchantId, currency, decimals } = voucher;
    const now = service.clock();
    const id = newId(now);
    const backTo = (amount: bigint) => ({
      refunded: toSum(currency, { minor: amount, decimals }),
      merchantId,
      transactionId: id,
    });
    const movedTo = (amount: bigint) => [{ currency, minor: amount, subjects: [`merchant ${merchantId}`] }];
    if (voucher.activated_at === null) {
      const [canceled] = await checkBooked(
        tx.query<Canceled>(cancelInactive({ bucket, serialNumber, id, now })),
      );
      const released = canceled?.released_minor ?? 0n;
      return {
        before: { closed: null },
        after: { closed: 'CANCELED', ...(released > 0n && backTo(released)) },
        moved: released > 0n ? movedTo(released) : [],
      };
    }
    if (minor === 0n || merchantId === null)
      throw new Refusal('42', { message: 'Voucher already redeemed: it holds nothing; block it instead' });
    const account = await getAccount(tx, merchantId, currency, 'FLOAT');
    const movement = { id, bucket, serialNumber, account, toVoucher: false, amountMinor: minor, now };
    await postVoucher(tx, { kind: 'CANCELLATION', ...movement });
    return {
      before: { balance: toSum(currency, { minor, decimals }) },
      after: { closed: 'CANCELED', ...backTo(minor) },
      moved: movedTo(minor),
    };
  });
}

type Canceled = { readonly outcome: string; readonly released_minor: bigint };

/** Returns a voucher, the merchant that had it generated, and its page. */
export async function ofVoucher(asking: Pick<Asked, 'caller'>, serialNumber: string): Promise<Agreed> {
  const { merchantId } = await showVoucher(asking.caller.service, BigInt(serialNumber));
  const merchant = await merchantNamed(asking, merchantId);
  return { voucher: serialNumber, merchant, link: `/vouchers/${serialNumber}` };
}
