import { audit, type Change } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { claimIn, type OperatorOperation } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { checkReference } from '../ledger/reference.ts';
import { Refusal } from '../refusal.ts';

/** What a money command came to; `replayed`: the same command under its reference was booked before. */
export type Booked = { readonly transactionId: string; readonly replayed: boolean };

type Wanted = {
  /** The merchant that the command concerns; 0 where it concerns none. */
  readonly merchantId: number;
  readonly operation: OperatorOperation;
  /** The operator's: the same command under it is booked once. */
  readonly reference: string;
  /** What makes a command the same. */
  readonly fingerprint: string;
};

/** What a command books with: its transaction, the id of its journal row, and the time of its stamp. */
export type Booking = { readonly tx: Queries; readonly id: string; readonly now: Date };

/**
 * Runs a money command of the operator once under its reference: booking and audit entry in one
 * transaction. A repetition returns the first result.
 * @param run books the row with the given id, and returns what the audit says of it
 * @throws Refusal `18`; `94` where the reference was used for another command; what `run` throws
 */
export async function bookOnce(
  operator: Operator,
  wanted: Wanted,
  run: (booking: Booking) => Promise<Change>,
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
