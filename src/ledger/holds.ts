import type { Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import { newId } from './id.ts';
import { accountOf, creditFloat, ensureAccounts } from './journal.ts';
import {
  debitFloat,
  type HoldRow,
  insertHold,
  insertPosting,
  listOldHolds,
  setHoldEnded,
  VOID_TRANSACTION,
} from './queries.ts';

/**
 * On several shards, a float and the voucher that it pays for may be on different servers. The money moves
 * from the float to the transit account under the id of the activation. From there it moves to the voucher,
 * or back if the activation is declined. The sweep resolves holds that a crash has left: it ends a hold whose
 * activation was booked, and releases the others.
 */

type Hold = {
  /** The id of the activation. */
  readonly id: string;
  readonly lowId: string;
  readonly merchantId: number;
  readonly currency: string;
  readonly amountMinor: bigint;
  /** The bucket of the voucher. */
  readonly bucket: number;
  readonly serialNumber: bigint;
};

class Uncovered extends Error {}

/**
 * Moves the amount of an activation out of the float, once for each id.
 * @returns false if the float is too low
 */
export async function holdFloat({ db, clock }: Service, hold: Hold): Promise<boolean> {
  const { id, lowId, merchantId, currency, amountMinor, bucket, serialNumber } = hold;
  // Creating accounts writes to all workers, so it is done only if they are missing.
  if ((await accountOf(db, merchantId, currency, 'FLOAT')) === undefined)
    await ensureAccounts(db, merchantId, currency);
  const debit = (await accountOf(db, merchantId, currency, 'FLOAT')) as bigint;
  const credit = (await accountOf(db, 0, currency, 'TRANSIT')) as bigint;
  const now = clock();
  const work = () =>
    db.transaction(async (tx) => {
      const entryId = newId(now);
      const made = await tx.query(
        insertHold({ id, accountId: debit, merchantId, amountMinor, bucket, serialNumber, entryId, now }),
      );
      if (made.length === 0) return;
      const [debited] = await tx.query<{ done: boolean }>(debitFloat(debit, amountMinor, lowId, now));
      if (!debited?.done) throw new Uncovered();
      const entry = { id: entryId, kind: 'HOLD', debit, credit, amountMinor, merchantId, now } as const;
      await tx.query(insertPosting(entry));
    });
  return retrying(work).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Uncovered) return false;
      throw error;
    },
  );
}

/**
 * Releases a hold whose activation was declined. It first voids the id: another copy of the request may
 * arrive with the same id, and must no longer be booked.
 */
export async function releaseHold(
  service: Service,
  { id, bucket, serialNumber }: Pick<Hold, 'id' | 'bucket' | 'serialNumber'>,
): Promise<void> {
  const [voided] = await service.db.hot<{ done: boolean }>(
    VOID_TRANSACTION,
    [bucket, serialNumber, id],
    bucket,
  );
  await endHold(service, id, !voided?.done);
}

/** Ends a hold after its activation was booked, or returns the money to the float. */
export async function endHold({ db, clock }: Service, id: string, isBooked: boolean): Promise<void> {
  await retrying(() =>
    db.transaction(async (tx) => {
      const now = clock();
      const releaseId = newId(now);
      const [hold] = await tx.query<HoldRow>(setHoldEnded(id, isBooked ? null : releaseId, now));
      if (!hold || isBooked) return;
      const { account_id: credit, merchant_id: merchantId, amount_minor: amountMinor, currency } = hold;
      const debit = (await accountOf(tx, 0, currency, 'TRANSIT')) as bigint;
      await creditFloat(tx, credit, amountMinor);
      const entry = {
        id: releaseId,
        kind: 'HOLD_RELEASE',
        debit,
        credit,
        amountMinor,
        merchantId,
        now,
      } as const;
      await tx.query(insertPosting(entry));
    }),
  );
}

/** The age at which a hold was cut off: an activation takes milliseconds. */
const OLD_MS = 300_000;
const PAGE = 100;

/**
 * Resolves holds that crashes have left. A hold whose bucket is down waits, but does not delay later ones.
 */
export async function resolveOldHolds(service: Service): Promise<void> {
  const { db, clock, log } = service;
  const before = new Date(clock().getTime() - OLD_MS);
  const rows = await db.query<{ id: string; bucket: number; serial_number: bigint }>(
    listOldHolds(before, PAGE),
  );
  for (const { id, bucket, serial_number: serialNumber } of rows)
    await releaseHold(service, { id, bucket, serialNumber }).catch((error: Error) =>
      log.warn({ part: 'holds', id, error: error.message }, 'a hold cannot be resolved'),
    );
}
