import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import type { Operation } from '../db/operation.ts';
import { type HotStatement, plainArray, sql, textArray } from '../db/sql.ts';
import { voidTransaction } from './claims.ts';
import { newId } from './id.ts';
import { ensureAccounts } from './journal.ts';

/**
 * On several shards, a float and the voucher that it pays for may be on different servers. The money moves
 * from the float to the transit account under the id of the activation. From there it moves to the voucher,
 * or back if the activation is declined. The sweep resolves holds that a crash has left: it ends a hold whose
 * activation was booked, and releases the others.
 *
 * Holds are batched by the bucket of the merchant, which has their rows of the journal (sql/008-claims.sql).
 */

/**
 * They lock a float while a worker commits, which all activations of a merchant wait for. Their connections
 * are separate, so that nothing else waits with them.
 */
const HOLD_FLOATS: HotStatement = {
  name: 'hold-floats',
  text: 'select * from hold_floats($1, $2, $3, $4, $5, $6, $7, $8, $9)',
  isSlow: true,
};

const END_HOLDS: HotStatement = { name: 'end-holds', text: 'select end_holds($1, $2)', isSlow: true };

const RELEASE_HOLDS: HotStatement = {
  name: 'release-holds',
  text: 'select release_holds($1, $2, $3)',
  isSlow: true,
};

type Hold = {
  /** The id of the activation. */
  readonly id: string;
  readonly merchantId: number;
  readonly currency: string;
  readonly amountMinor: bigint;
  /** The bucket of the voucher. */
  readonly bucket: number;
  readonly serialNumber: bigint;
};

/** A request with the clock of its process, which is read when its call is sent. */
type Timed<T> = T & { readonly clock: () => Date };
type Ending = Timed<Pick<Hold, 'id'>>;
type HoldRow = { readonly ord: number; readonly outcome: 'ok' | 'short' | 'wait' | 'account' };

const newIds = (count: number, now: Date) => plainArray(Array.from({ length: count }, () => newId(now)));
const timeOf = (requests: readonly Timed<unknown>[]) => requests[0]?.clock() as Date;

const holds: Operation<Timed<Hold>, HoldRow['outcome'], HoldRow['outcome']> = {
  merchantOf: ({ merchantId }) => merchantId,
  keysOf: ({ id }) => [id],
  async run(db, requests) {
    const now = timeOf(requests);
    const rows = await db.hot<HoldRow>(HOLD_FLOATS, [
      plainArray(requests.map(({ merchantId }) => merchantId)),
      textArray(requests.map(({ currency }) => currency)),
      plainArray(requests.map(({ amountMinor }) => amountMinor)),
      plainArray(requests.map(({ bucket }) => bucket)),
      plainArray(requests.map(({ serialNumber }) => serialNumber)),
      plainArray(requests.map(({ id }) => id)),
      newIds(requests.length, now),
      newIds(requests.length, now),
      now,
    ]);
    return rows.sort((one, other) => one.ord - other.ord).map(({ outcome }) => outcome);
  },
  answer: (_, outcome) => outcome,
};

/**
 * Declares an operation that ends holds.
 * @param valuesOf returns the parameters between the ids and the time
 */
const ending = (
  statement: HotStatement,
  valuesOf: (count: number, now: Date) => readonly unknown[],
): Operation<Ending, undefined, void> => ({
  keysOf: ({ id }) => [id],
  async run(db, requests) {
    const now = timeOf(requests);
    const ids = plainArray(requests.map(({ id }) => id));
    await db.hot(statement, [ids, ...valuesOf(requests.length, now), now]);
    return requests.map(() => undefined);
  },
  answer() {},
});

const ends = ending(END_HOLDS, () => []);
const releases = ending(RELEASE_HOLDS, (count, now) => [newIds(count, now)]);

/**
 * How long an activation waits, step by step, for holds that may return the money that it needs. They last
 * milliseconds, unless a worker is away.
 */
const WAITS_MS = [10, 20, 40, 80, 160, 320, 640];

/**
 * Moves the amount of an activation out of the float, once for each id. On one server, an activation that is
 * declined takes nothing from the float. So here one that finds too little waits while holds of others, which
 * may be declined, have the money.
 * @returns false if the float is too low
 */
export async function holdFloat({ batcher, buckets, clock, db }: Service, hold: Hold): Promise<boolean> {
  const { merchantId, currency } = hold;
  for (let waits = 0; ; ) {
    const request = { ...hold, clock };
    const outcome = await batcher.add(holds, buckets.ofMerchant(merchantId), request);
    if (outcome === 'account') {
      // Creating accounts writes to all workers, so it is done only if they are missing.
      await ensureAccounts(db, merchantId, currency);
    } else if (outcome === 'wait' && waits < WAITS_MS.length) {
      await sleep(WAITS_MS[waits++]);
    } else {
      return outcome === 'ok';
    }
  }
}

/** Ends a hold after its activation was booked. */
export function endHold({ batcher, buckets, clock }: Service, id: string): Promise<void> {
  return batcher.add(ends, buckets.ofMerchant(0), { id, clock });
}

/**
 * Releases a hold whose activation was declined. It first voids the id: another copy of the request may
 * arrive with the same id, and must no longer be booked.
 */
export async function releaseHold(
  service: Service,
  { id, merchantId, serialNumber }: Pick<Hold, 'id' | 'merchantId' | 'serialNumber'>,
): Promise<void> {
  const isVoided = await voidTransaction(service, id, serialNumber);
  await (isVoided ? releaseVoided(service, merchantId, id) : endHold(service, id));
}

/** Releases a hold whose id was voided, if there is one. */
export function releaseVoided(
  { batcher, buckets, clock }: Service,
  merchantId: number,
  id: string,
): Promise<void> {
  return batcher.add(releases, buckets.ofMerchant(merchantId), { id, clock });
}

/** The age at which a hold was cut off: an activation takes milliseconds. */
const OLD_MS = 300_000;
const PAGE = 100;

type OldHold = Pick<Hold, 'id' | 'merchantId' | 'serialNumber'>;

/**
 * Resolves holds that crashes have left. A hold whose bucket is down waits, but does not delay later ones.
 */
export async function resolveOldHolds(service: Service): Promise<void> {
  const { db, clock, log } = service;
  const before = new Date(clock().getTime() - OLD_MS);
  const rows = await db.query<OldHold>(sql`
select id, merchant_id as "merchantId", serial_number as "serialNumber" from float_holds
where ended_at is null and held_at < ${before} order by held_at limit ${PAGE}`);
  for (const hold of rows)
    await releaseHold(service, hold).catch((error: Error) =>
      log.warn({ part: 'holds', id: hold.id, error: error.message }, 'a hold cannot be resolved'),
    );
}
