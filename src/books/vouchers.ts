import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { getAccount, postVoucher } from '../ledger/journal.ts';
import { findEntry } from '../ledger/queries.ts';
import { type Money, toSum, unitOf } from '../money.ts';
import { correctOne } from '../redemptions/queries.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { lockVoucher } from '../vouchers/operate.ts';
import type { Entry } from './floats.ts';
import { type Booked, bookOnce } from './sweep.ts';

/** The operator's movements to and from single vouchers. */

type Held = { readonly balance: bigint; readonly currency: string; readonly decimals: number };

const balances = ({ balance, currency, decimals }: Held, deltaMinor: bigint) => {
  const at = (minor: bigint) => ({ balance: toSum(currency, { minor, decimals }) });
  const moved = [{ currency, minor: deltaMinor < 0n ? -deltaMinor : deltaMinor }];
  return { before: at(balance), after: at(balance + deltaMinor), moved };
};

/**
 * Changes the balance of a voucher by a signed amount, never to a given balance: ADJUSTMENT, from goodwill to
 * the voucher or back.
 * @throws Refusal `30` without a reason; `18`, `94`, `14`, `44`, `54`, `40`, `51`, `13`
 */
export async function adjustVoucher(
  operator: Operator,
  wanted: { readonly serialNumber: bigint; readonly deltaMinor: bigint; readonly reference: string },
): Promise<Booked> {
  const { serialNumber, deltaMinor, reference } = wanted;
  if (operator.actor.reason === null)
    throw new Refusal('30', { message: 'Invalid request: an adjustment needs a reason' });
  const bucket = operator.service.buckets.ofSerial(serialNumber);
  const claim = { merchantId: 0, operation: 'adjust', reference } as const;
  const fingerprint = `${serialNumber} ${deltaMinor}`;
  return bookOnce(operator, { ...claim, fingerprint }, async ({ tx, id, now }) => {
    const voucher = await lockVoucher(tx, bucket, serialNumber);
    const account = await getAccount(tx, 0, voucher.currency, 'GOODWILL');
    const toVoucher = deltaMinor > 0n;
    const amountMinor = toVoucher ? deltaMinor : -deltaMinor;
    const movement = { kind: 'ADJUSTMENT', id, bucket, serialNumber, account, toVoucher, amountMinor, now };
    await postVoucher(tx, { ...movement, reference });
    return { action: 'voucher.adjust', subject: `voucher ${serialNumber}`, ...balances(voucher, deltaMinor) };
  });
}

type CashOut = {
  readonly serialNumber: bigint;
  /** Null pays out the whole balance. */
  readonly amountMinor: bigint | null;
  /** The merchant that paid the cash, or null for the operator. */
  readonly merchantId: number | null;
  readonly reference: string;
};

/**
 * Books a remainder that was paid out in cash: CASH_OUT, from the voucher to the settlement account of the
 * merchant that paid, or to funding.
 * @throws Refusal `18`, `94`, `14`, `44`, `43`, `54`, `40`, `42`, `51`
 */
export async function cashOut(operator: Operator, wanted: CashOut): Promise<Booked> {
  const { serialNumber, merchantId, reference } = wanted;
  const bucket = operator.service.buckets.ofSerial(serialNumber);
  const fingerprint = `${serialNumber} ${wanted.amountMinor ?? 'all'} ${merchantId ?? 'operator'}`;
  const claim = { merchantId: merchantId ?? 0, operation: 'cash-out', reference, fingerprint } as const;
  return bookOnce(operator, claim, async ({ tx, id, now }) => {
    const voucher = await lockVoucher(tx, bucket, serialNumber);
    const kind = merchantId === null ? 'FUNDING' : 'SETTLEMENT';
    const account = await getAccount(tx, merchantId ?? 0, voucher.currency, kind);
    const amountMinor = wanted.amountMinor ?? voucher.balance;
    const movement = { kind: 'CASH_OUT', id, bucket, serialNumber, account, toVoucher: false, amountMinor };
    await postVoucher(tx, { ...movement, reference, now });
    const { after, ...change } = balances(voucher, -amountMinor);
    const details = { ...after, paidBy: merchantId ?? 'the operator' };
    return { action: 'voucher.cash-out', subject: `voucher ${serialNumber}`, ...change, after: details };
  });
}

/**
 * Books the balance of a voucher as paid to a state: ESCHEAT, from the voucher to funding.
 * @throws Refusal `18`, `94`, `14`, `44`, `40`, `42`
 */
export async function escheatVoucher(
  operator: Operator,
  { serialNumber, reference }: { readonly serialNumber: bigint; readonly reference: string },
): Promise<Booked> {
  const bucket = operator.service.buckets.ofSerial(serialNumber);
  const claim = { merchantId: 0, operation: 'escheat', reference, fingerprint: `${serialNumber}` } as const;
  return bookOnce(operator, claim, async ({ tx, id, now }) => {
    const voucher = await lockVoucher(tx, bucket, serialNumber);
    const amountMinor = voucher.balance;
    const account = await getAccount(tx, 0, voucher.currency, 'FUNDING');
    const movement = { kind: 'ESCHEAT', id, bucket, serialNumber, account, toVoucher: false, amountMinor };
    await postVoucher(tx, { ...movement, reference, now });
    const details = balances(voucher, -amountMinor);
    return { action: 'voucher.escheat', subject: `voucher ${serialNumber}`, ...details };
  });
}

/** Returns the balance of a voucher, for the currency of an amount. @throws Refusal `14` */
export async function voucherBalance(
  operator: Operator,
  serialNumber: bigint,
): Promise<Money & { currency: string }> {
  const { db, buckets } = operator.service;
  const found = await db.transaction((tx) => lockVoucher(tx, buckets.ofSerial(serialNumber), serialNumber));
  return { minor: found.balance, decimals: found.decimals, currency: found.currency };
}

/** Returns a redemption by its transaction id. @throws Refusal `60` */
export async function getRedemption({ service }: Operator, transactionId: string): Promise<Entry> {
  const [entry] = await service.db.query<Entry>(findEntry(transactionId));
  if (entry?.kind !== 'REDEMPTION' || entry.original_id !== null)
    throw new Refusal('60', { message: 'Redemption not found: no redemption has this transaction id' });
  return entry;
}

type Row = {
  readonly outcome: RefusalCode | 'ok' | 'again';
  readonly reversal_id: string;
  readonly new_id: string | null;
  readonly new_minor: bigint;
};

/** The reversal, and the redemption that replaces the first one (null after a full reversal). */
type Corrected = Booked & { readonly newId: string | null };

/**
 * Corrects the amount of a redemption on a merchant's behalf, like the merchant's own update: once, and in
 * one step. The same correction again returns the first result.
 * @param amountMinor 0 reverses it in full
 * @throws Refusal `30` without a reason; `44`, `43`, `54`, `58`, `51`
 */
export async function correctRedemption(
  operator: Operator,
  redemption: Entry,
  amountMinor: bigint,
): Promise<Corrected> {
  const { service, actor } = operator;
  if (actor.reason === null)
    throw new Refusal('30', { message: 'Invalid request: a correction needs a reason (--reason)' });
  const { decimals, currency } = redemption;
  const merchant = `merchant ${redemption.merchant_id}`;
  const difference = amountMinor - redemption.amount_minor;
  const sum = (minor: bigint) => toSum(currency, { minor, decimals });
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const { outcome, ...made } = await update(operator, tx, redemption, amountMinor);
      const replayed = outcome === '58' && made.new_minor === amountMinor;
      const corrected = { transactionId: made.reversal_id, newId: made.new_id, replayed };
      if (replayed) return corrected;
      if (outcome !== 'ok') throw new Refusal(outcome as RefusalCode);
      await audit(tx, operator, {
        action: 'redemption.correct',
        subject: `voucher ${redemption.serial_number}`,
        before: { redemption: redemption.id, amount: sum(redemption.amount_minor) },
        after: { amount: sum(amountMinor), transactionId: made.reversal_id },
        moved: [{ currency, minor: difference < 0n ? -difference : difference, subjects: [merchant] }],
      });
      return corrected;
    }),
  );
}

async function update(
  { service }: Operator,
  tx: Queries,
  redemption: Entry,
  amountMinor: bigint,
): Promise<Row> {
  const now = service.clock();
  const [row] = await tx.query<Row>(
    correctOne({
      bucket: redemption.bucket,
      merchantId: redemption.merchant_id as number,
      originalId: redemption.id,
      amountUnits: amountMinor * unitOf(redemption.decimals),
      ids: [newId(now), newId(now), newId(now)],
      now,
    }),
  );
  if (!row) throw new Error('a correction has no outcome');
  return row;
}
