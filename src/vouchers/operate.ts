import { changeIn } from '../agreement.ts';
import { audit, type Change } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { randomCode, randomPin } from '../credentials.ts';
import { serialOf, slotOfSerial } from '../db/buckets.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, sql } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { newId } from '../ledger/id.ts';
import { checkBooked, declined, getAccount, lockExpiries, postVoucher } from '../ledger/journal.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { ABOVE_LIMIT, alone, changing, MOVES_MONEY, tableOf, twoPeople } from '../operation.ts';
import { CARE, MANAGE, MONEY } from '../principal.ts';
import { Refusal } from '../refusal.ts';
import { End, SerialNumber } from '../schema.ts';
import { announceVoucher, type VoucherEventType } from '../webhooks/outbox.ts';
import { toEnd } from '../zone.ts';
import { ofVoucher, show, showWhole, VoucherSchema } from './show.ts';

/**
 * The changes that an operator can make to a single voucher. Each one happens completely, or is declined and
 * changes nothing.
 */

export type Locked = {
  readonly batchId: number;
  readonly balance: bigint;
  readonly expiresAt: Date;
  readonly closed: 'CANCELED' | 'REPLACED' | null;
  readonly blockedAt: Date | null;
  readonly activatedAt: Date | null;
  readonly payerId: number | null;
  readonly wrongPins: number;
  readonly currency: string;
};

/** Locks a voucher until the transaction ends. @throws Refusal `14` */
export async function lockVoucher(tx: Queries, bucket: number, serialNumber: bigint): Promise<Locked> {
  const [voucher] = await tx.query<Locked>(sql`
select batch_id as "batchId", balance_minor as balance, expires_at as "expiresAt", closed, blocked_at as "blockedAt",
  activated_at as "activatedAt", payer_id as "payerId", wrong_pins as "wrongPins", currency
from lock_voucher(${bucket}, ${serialNumber})`);
  if (!voucher) throw declined('14');
  return voucher;
}

type Changed = Omit<Change, 'action' | 'subject'> & {
  /** The event about the voucher; left out if the change causes none. */
  readonly event?: { readonly type: VoucherEventType; readonly amountMinor?: bigint } | undefined;
};

/**
 * Runs a change under the voucher's lock, with its event and its entry in the audit. A closed voucher cannot
 * be changed.
 */
async function change(
  operator: Operator,
  serialNumber: bigint,
  action: string,
  run: (tx: Queries, voucher: Locked & { readonly bucket: number }) => Promise<Changed>,
): Promise<void> {
  const { db, buckets, clock } = operator.service;
  const bucket = buckets.ofSerial(serialNumber);
  await retrying(() =>
    db.transaction(async (tx) => {
      const voucher = await lockVoucher(tx, bucket, serialNumber);
      if (voucher.closed) throw declined('44');
      const { event, ...details } = await run(tx, { bucket, ...voucher });
      if (event) {
        const { type, amountMinor = null } = event;
        await announceVoucher(tx, { bucket, serialNumber, type, amountMinor, now: clock() });
      }
      await audit(tx, operator, { action, subject: `voucher ${serialNumber}`, ...details });
    }),
  );
}

/**
 * Blocks a voucher: it cannot be spent or activated (`43`) until it is unblocked.
 * @throws Refusal `14`, `44`
 */
export async function blockVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  const now = operator.service.clock();
  await change(operator, serialNumber, 'voucher.block', async (tx, { bucket, blockedAt }) => {
    await tx.query(sql`select set_voucher_block(${bucket}, ${serialNumber}, ${now})`);
    const event = blockedAt === null ? ({ type: 'voucher.blocked' } as const) : undefined;
    return { before: { blockedAt }, after: { blockedAt: blockedAt ?? now }, event };
  });
}

/** Unblocks a voucher. @throws Refusal `14`, `44` */
export async function unblockVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  await change(operator, serialNumber, 'voucher.unblock', async (tx, { bucket, blockedAt }) => {
    await tx.query(sql`select set_voucher_block(${bucket}, ${serialNumber}, null)`);
    const event = blockedAt === null ? undefined : ({ type: 'voucher.unblocked' } as const);
    return { before: { blockedAt }, after: { blockedAt: null }, event };
  });
}

/** Resets the count of wrong PINs and ends the lock. @throws Refusal `14`, `44` */
export async function unlockPin(operator: Operator, serialNumber: bigint): Promise<void> {
  await change(operator, serialNumber, 'voucher.unlock-pin', async (tx, { bucket, wrongPins }) => {
    await tx.query(sql`select reset_voucher_pin(${bucket}, ${serialNumber})`);
    return { before: { wrongPins }, after: { wrongPins: 0 } };
  });
}

/** Declares a change that can be undone, and moves no money. */
function undoable(
  verb: 'block' | 'unblock' | 'unlock-pin',
  summary: string,
  run: (operator: Operator, serialNumber: bigint) => Promise<void>,
) {
  return changing({
    name: `voucher.${verb}`,
    summary,
    path: `/vouchers/:serialNumber/${verb}`,
    input: { serialNumber: SerialNumber },
    output: VoucherSchema,
    roles: CARE,
    approval: alone('It can be undone, and moves no money.'),
    async run(caller, { serialNumber }) {
      await run(caller, BigInt(serialNumber));
      return showWhole(caller, BigInt(serialNumber));
    },
  });
}

const block = undoable('block', 'Refuse to redeem or activate a voucher (43)', blockVoucher);
const unblock = undoable('unblock', 'End the block of a voucher', unblockVoucher);
const unlock = undoable(
  'unlock-pin',
  'Forget the wrong PINs of a voucher, and end the lock that they caused',
  unlockPin,
);

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
    const { bucket, currency } = voucher;
    if (expiresAt <= operator.service.clock() || expiresAt <= voucher.expiresAt) {
      throw new Refusal('17', {
        message: `Invalid expiry date: the voucher is valid until ${voucher.expiresAt.toISOString()}; name a later date`,
      });
    }
    const reinstated = await reinstate(operator, tx, bucket, serialNumber);
    const reserved = await reserveAgain(operator, tx, bucket, serialNumber);
    const minor = reinstated.minor + reserved;
    const back = minor > 0n && { reinstated: reinstated.ids, amount: toSum(currency, minor) };
    const now = operator.service.clock();
    await tx.query(setExpiry(bucket, serialNumber, expiresAt, now));
    return {
      before: { expiresAt: voucher.expiresAt },
      after: { expiresAt, ...back },
      moved: back ? [{ currency, minor }] : [],
    };
  });
}

/** Sets the expiry of a voucher (sql/012-vouchers.sql). The id of the change begins with its time. */
export const setExpiry = (bucket: number, serialNumber: bigint, expiresAt: Date, now: Date) =>
  sql`select set_voucher_expiry(${bucket}, ${serialNumber}, ${expiresAt}, ${newId(now)}, ${now})`;

/** Gives back the expired amounts of a voucher: a REINSTATEMENT for each EXPIRY. @returns their sum */
async function reinstate({ service }: Operator, tx: Queries, bucket: number, serialNumber: bigint) {
  const expiries = await lockExpiries(tx, bucket, [serialNumber]);
  const paid = expiries.find(({ escheatId }) => escheatId !== null);
  if (paid)
    throw new Refusal('51', {
      message: `Insufficient balance: the money of the voucher was paid to a state (${paid.escheatId})`,
    });
  for (const { id: originalId, account, amountMinor } of expiries) {
    const now = service.clock();
    const movement = { kind: 'REINSTATEMENT', id: newId(now), bucket, serialNumber, account, now };
    await postVoucher(tx, { ...movement, toVoucher: true, amountMinor, originalId });
  }
  const minor = expiries.reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
  return { minor, ids: expiries.map(({ id }) => id) };
}

/**
 * Takes the price of an inactive voucher again, if its expiry gave the price back.
 * @returns the price, or 0
 */
async function reserveAgain({ service }: Operator, tx: Queries, bucket: number, serialNumber: bigint) {
  const now = service.clock();
  const [taken] = await checkBooked(
    tx.query<{ outcome: string; taken: bigint }>(sql`
select outcome, taken_minor as taken
from reserve_again(${bucket}, ${serialNumber}, ${newId(now)}, ${newId(now)}, ${now})`),
  );
  return taken?.taken ?? 0n;
}

const extend = changing({
  name: 'voucher.extend',
  summary: 'Extend the validity of a voucher, even if it has expired',
  path: '/vouchers/:serialNumber/extend',
  input: { serialNumber: SerialNumber, expiry: End('When it expires from now on.') },
  output: VoucherSchema,
  roles: CARE,
  approval: twoPeople({
    why: 'What has expired is income, the property of others, or money of a merchant.',
    when: [MOVES_MONEY],
    approvers: MONEY,
  }),
  agreement: {
    sentence: 'Extend voucher {voucher} of {merchant} to {expiry}, and give {amount} back to it',
    async of(asked) {
      const { serialNumber, expiry } = asked.input;
      return { ...(await ofVoucher(asked, serialNumber)), expiry, amount: changeIn(asked).after['amount'] };
    },
  },
  async run(caller, { serialNumber, expiry }) {
    await extendVoucher(caller, BigInt(serialNumber), await toEnd(caller, expiry, 'expiry'));
    return showWhole(caller, BigInt(serialNumber));
  },
});

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
  await change(operator, serialNumber, 'voucher.replace', async (tx, { bucket, expiresAt }) => {
    if (expiresAt <= service.clock())
      throw new Refusal('54', { message: 'Voucher expired: extend it first' });
    await holdKeyRing(tx, service.keys);
    replacedBy = await insertReplacement(service, tx, bucket, serialNumber);
    return {
      before: { closed: null },
      after: { closed: 'REPLACED', replacedBy },
      touches: [`voucher ${replacedBy}`],
      event: { type: 'voucher.replaced' },
    };
  });
  return replacedBy;
}

/** Inserts a replacement. If the code exists, another one is drawn. */
async function insertReplacement(
  { keys, clock }: Service,
  tx: Queries,
  bucket: number,
  replaced: bigint,
): Promise<bigint> {
  const now = clock();
  for (;;) {
    const [drawn] = await tx.query<{ number: bigint }>(sql`select nextval('voucher_numbers') as number`);
    const code = randomCodeOf(keys, slotOfSerial(replaced));
    const serialNumber = serialOf(drawn?.number as bigint, slotOfSerial(replaced));
    const older = keys.olderCodeKeys(code);
    const find = sql`select from find_code_keys(${plainArray(older)}::uuid[])`;
    if (older.length > 0 && (await tx.query(find)).length > 0) continue;
    const pin = randomPin();
    const [made] = await tx.query<{ done: boolean }>(sql`
select replace_voucher(${bucket}, ${replaced}, ${serialNumber}, ${keys.codeKey(code)}::uuid,
  ${keys.pinKey(code, pin)}::uuid, ${keys.seal(serialNumber, code, pin)}::bytea, ${newId(now)}::uuid,
  ${now}) as done`);
    if (made?.done) return serialNumber;
  }
}

/**
 * Returns a code with a given slot, so that a voucher and its replacement are in one bucket. On average, one
 * of 64 drawn codes has the slot.
 */
function randomCodeOf(keys: KeyRing, slot: number): string {
  for (;;) {
    const code = randomCode();
    if (keys.slotOf(code) === slot) return code;
  }
}

const replace = changing({
  name: 'voucher.replace',
  summary: 'Close a voucher for good and replace it by a new one, whose card `sheets.order-card` orders',
  path: '/vouchers/:serialNumber/replace',
  input: { serialNumber: SerialNumber },
  output: VoucherSchema,
  roles: CARE,
  approval: alone('The balance stays, and two people let the card out.'),
  risk: 'step-up',
  run: async (caller, { serialNumber }) =>
    showWhole(caller, await replaceVoucher(caller, BigInt(serialNumber))),
});

/**
 * Cancels a voucher permanently: its balance goes back to the float that paid for it (CANCELLATION). Its
 * redemptions remain. If it is not active, its price goes back (RELEASE); if nobody has paid for it, nothing
 * moves.
 * @throws Refusal `14`, `44`, `54`; `42` if its balance is 0; `13` if the float would exceed its maximum
 */
export async function cancelVoucher(operator: Operator, serialNumber: bigint): Promise<void> {
  const { service } = operator;
  await change(operator, serialNumber, 'voucher.cancel', async (tx, voucher) => {
    const { bucket, balance: minor, payerId: merchantId, currency } = voucher;
    const now = service.clock();
    const id = newId(now);
    const backTo = (amount: bigint) => ({
      refunded: toSum(currency, amount),
      merchantId,
      transactionId: id,
    });
    const movedTo = (amount: bigint) => [{ currency, minor: amount, subjects: [`merchant ${merchantId}`] }];
    if (voucher.activatedAt === null) {
      const [canceled] = await checkBooked(
        tx.query<{ outcome: string; released: bigint }>(sql`
select outcome, released_minor as released from cancel_inactive(${bucket}, ${serialNumber}, ${id}, ${now})`),
      );
      const released = canceled?.released ?? 0n;
      return {
        before: { closed: null },
        after: { closed: 'CANCELED', ...(released > 0n && backTo(released)) },
        moved: released > 0n ? movedTo(released) : [],
        event: { type: 'voucher.canceled', amountMinor: released },
      };
    }
    if (minor === 0n || merchantId === null)
      throw new Refusal('42', { message: 'Voucher already redeemed: it holds nothing; block it instead' });
    const account = await getAccount(tx, merchantId, currency, 'FLOAT');
    const movement = { id, bucket, serialNumber, account, toVoucher: false, amountMinor: minor, now };
    await postVoucher(tx, { kind: 'CANCELLATION', ...movement });
    return {
      before: { balance: toSum(currency, minor) },
      after: { closed: 'CANCELED', ...backTo(minor) },
      moved: movedTo(minor),
      event: { type: 'voucher.canceled', amountMinor: minor },
    };
  });
}

const cancel = changing({
  name: 'voucher.cancel',
  title: 'Cancel the voucher',
  summary: 'Cancel a voucher for good; its money goes back to the float that paid for it',
  path: '/vouchers/:serialNumber/cancel',
  input: { serialNumber: SerialNumber },
  output: VoucherSchema,
  roles: MANAGE,
  approval: twoPeople({
    why: 'It cannot be undone, and moves money.',
    when: [ABOVE_LIMIT],
  }),
  agreement: {
    sentence:
      'Cancel voucher {voucher} of {merchant} for good, and give {amount} back to the float of {payer}',
    async of(asked) {
      const { refunded: amount, merchantId } = changeIn(asked).after;
      const payer = await merchantNamed(asked, merchantId as string | null);
      return { ...(await ofVoucher(asked, asked.input.serialNumber)), amount, payer };
    },
  },
  risk: 'step-up',
  async run(caller, { serialNumber }) {
    await cancelVoucher(caller, BigInt(serialNumber));
    return showWhole(caller, BigInt(serialNumber));
  },
});

export const OPERATIONS = tableOf(show, block, unblock, unlock, extend, replace, cancel);
