import Type from 'typebox';
import { audit, type Change } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { checkReference, claimIn, type OperatorOperation } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { getAccount, post, postVoucher } from '../ledger/journal.ts';
import type { AccountKind } from '../ledger/kinds.ts';
import { toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { Major, Text, TransactionId } from '../schema.ts';
import { type Locked, lockVoucher } from '../vouchers/operate.ts';

/** Money commands of the operator. Each is booked once under its reference. */

/** What a money command returns. `replayed`: the same command was booked earlier under its reference. */
export const Booking = { transactionId: TransactionId, replayed: Type.Boolean() };

export type Booked = { readonly transactionId: string; readonly replayed: boolean };

export const BookedAmount = Type.Object({ currency: Text, amount: Major(), ...Booking });

type Wanted = {
  /** The merchant among whose references this one is; 0: the references of the operator. */
  readonly merchantId: number;
  readonly operation: OperatorOperation;
  /** The operator's reference. The same command under it is booked once. */
  readonly reference: string;
  /** Two commands are the same if their fingerprints are equal. */
  readonly fingerprint: string;
};

/** The transaction of a command, the id of its journal row, and the time of its stamp. */
type Transaction = { readonly tx: Queries; readonly id: string; readonly now: Date };

/**
 * Runs a money command of the operator once under its reference. One transaction holds the booking and the
 * audit entry. A repetition returns the first result.
 * @param run books the row with the given id, and returns the details for the audit
 * @throws Refusal `18`; `94` if the reference was used for another command; any error of `run`
 */
export async function bookOnce(
  operator: Operator,
  wanted: Wanted,
  run: (transaction: Transaction) => Promise<Change>,
): Promise<Booked> {
  checkReference(wanted.reference);
  const { service } = operator;
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const now = service.clock();
      const id = newId(now);
      const claim = await claimIn(tx, service, { ...wanted, id });
      if (claim.fingerprint !== wanted.fingerprint) throw new Refusal('94');
      if (claim.id !== id) return { transactionId: claim.id, replayed: true };
      const { after, ...change } = await run({ tx, id, now });
      const details = { ...(after as object), transactionId: id, reference: wanted.reference };
      await audit(tx, operator, { ...change, after: details });
      return { transactionId: id, replayed: false };
    }),
  );
}

type Move = Wanted & {
  readonly kind: string;
  /** The owner of the float or settlement account; 0 if there is none. The others are the operator's. */
  readonly ownerId: number;
  readonly currency: string;
  readonly amountMinor: bigint;
  readonly debit: AccountKind;
  readonly credit: AccountKind;
  readonly originalId?: string;
  /** What the audit has besides the amount. */
  readonly change: Pick<Change, 'action' | 'subject' | 'before' | 'after'>;
};

/** Books a movement between two accounts once. @throws Refusal as `bookOnce`; or of the database */
export function moveOnce(operator: Operator, { change, kind, ownerId, ...wanted }: Move): Promise<Booked> {
  const { currency, amountMinor, reference, originalId = null } = wanted;
  return bookOnce(operator, wanted, async ({ tx, id, now }) => {
    const accountOf = (of: AccountKind) =>
      getAccount(tx, of === 'FLOAT' || of === 'SETTLEMENT' ? ownerId : 0, currency, of);
    const [debit, credit] = [await accountOf(wanted.debit), await accountOf(wanted.credit)];
    const merchantId = ownerId || null;
    await post(tx, { kind, id, debit, credit, amountMinor, merchantId, originalId, reference, now });
    return {
      ...change,
      after: { amount: toSum(currency, amountMinor), ...change.after },
      moved: [{ currency, minor: amountMinor }],
    };
  });
}

export type VoucherMove = Omit<Wanted, 'fingerprint'> & {
  readonly kind: string;
  readonly serialNumber: bigint;
  /** Commands about the voucher are the same if these are equal, too. */
  readonly fingerprint?: string;
  /** The account from which the money comes, or to which it goes. */
  readonly account: AccountKind;
  /** The change of the balance in minor units; null takes all of it. */
  readonly deltaMinor: bigint | null;
  /** Refuses the movement, under the lock of the voucher. */
  readonly check?: (tx: Queries, voucher: Locked) => Promise<void>;
  /** What the audit has besides the balance. */
  readonly change: Pick<Change, 'action' | 'after'>;
};

/**
 * Books a movement between a voucher and an account once: that of the merchant of the command, or of the
 * operator.
 * @throws Refusal as `bookOnce`; `14`; or of the database
 */
export function moveOnVoucher(
  operator: Operator,
  { serialNumber, change, check, kind, ...wanted }: VoucherMove,
): Promise<Booked> {
  const { merchantId, reference } = wanted;
  const bucket = operator.service.buckets.ofSerial(serialNumber);
  const fingerprint = [serialNumber, wanted.fingerprint].filter((each) => each !== undefined).join(' ');
  return bookOnce(operator, { ...wanted, fingerprint }, async ({ tx, id, now }) => {
    const voucher = await lockVoucher(tx, bucket, serialNumber);
    await check?.(tx, voucher);
    const { currency, balance } = voucher;
    const account = await getAccount(tx, merchantId, currency, wanted.account);
    const deltaMinor = wanted.deltaMinor ?? -balance;
    const toVoucher = deltaMinor > 0n;
    const amountMinor = toVoucher ? deltaMinor : -deltaMinor;
    const movement = { kind, id, bucket, serialNumber, account, toVoucher, amountMinor, reference, now };
    await postVoucher(tx, movement);
    return {
      action: change.action,
      subject: `voucher ${serialNumber}`,
      before: { balance: toSum(currency, balance) },
      after: { balance: toSum(currency, balance + deltaMinor), ...change.after },
      moved: [{ currency, minor: amountMinor }],
    };
  });
}
