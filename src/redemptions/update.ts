import type { Context } from '../context.ts';
import { AGAIN, calling, type Operation } from '../db/operation.ts';
import { type HotStatement, plainArray, textArray } from '../db/sql.ts';
import {
  askedBy,
  type Located,
  type Lookup,
  limitIds,
  locate,
  locatedIds,
  lookingUp,
} from '../ledger/booking.ts';
import { checkLookupReference, checkReference } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { type RedemptionUpdate, toUpdate, type UpdateRow } from '../ledger/transaction.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { toNumber, toUnits } from '../money.ts';
import { type Decline, Refusal, refusalOf } from '../refusal.ts';

/** The functions of sql/009-update-redemption.sql. */
export const UPDATE_REDEMPTIONS: HotStatement = {
  name: 'update-redemptions',
  text: 'select * from update_redemptions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
};

export const FIND_UPDATES: HotStatement = {
  name: 'find-updates',
  text: 'select * from find_updates($1, $2, $3, $4)',
};

type Request = Lookup & {
  readonly amountUnits: bigint;
  readonly reversalId: string;
  readonly newId: string;
  /** The id of the movement to the voucher that replaced this one, if there is one. */
  readonly replacementId: string;
};

/** `58` also contains the first update. */
type Row = UpdateRow & { readonly outcome: Decline | 'ok' | 'again' };

const book = calling<Request, Row>(
  UPDATE_REDEMPTIONS,
  (requests) => [
    plainArray(requests.map(({ context }) => context.merchant.id)),
    plainArray(requests.map(({ context }) => askedBy(context))),
    textArray(requests.map(({ reference }) => reference)),
    locatedIds(requests),
    plainArray(requests.map(({ amountUnits }) => amountUnits)),
    plainArray(requests.map(({ reversalId }) => reversalId)),
    plainArray(requests.map((request) => request.newId)),
    plainArray(requests.map(({ replacementId }) => replacementId)),
    limitIds(requests),
    requests.at(-1)?.context.service.clock(),
  ],
  AGAIN,
);

const updates: Operation<Request, Row, Row> = {
  merchantOf: ({ context }) => context.merchant.id,
  keysOf: ({ context, reference }) => [`${context.merchant.id} ${reference}`],
  async run(db, requests, bucket) {
    const rows = await book(db, requests, bucket);
    return rows.map((row) => (row !== AGAIN && row.outcome === 'again' ? AGAIN : row));
  },
  answer: (_, row) => row,
};

/** Those of merchants with daily limits, in calls of their own: they wait for locks. */
const limitedUpdates = { ...updates };

const lookups = lookingUp<UpdateRow>(FIND_UPDATES);

/**
 * Updates a redemption of the merchant. This is possible once. The original is canceled and reversed, and a
 * new redemption of `amountUsed` replaces it, unless that is 0. It happens completely or not at all.
 * @param request.reference of the redemption, or its transaction id if it has none
 * @param request.amountUsed in major units, 0 or more
 * @throws Refusal `18`, `13`, `03`, `60`, `44`, `43`, `54`, `58` (with the first update as its data),
 *   `51`
 */
export async function updateRedemption(
  context: Context,
  { reference, amountUsed }: { readonly reference: string; readonly amountUsed: number },
): Promise<RedemptionUpdate> {
  checkReference(reference);
  const amountUnits = toUnits(amountUsed);
  if (amountUnits < 0n) throw new Refusal('13');
  await permitAmount(context, 'update-redemption', amountUnits);
  const { service, merchant, now } = context;
  const { id, bucket } = await locateRedemption(context, reference);
  const [reversalId, replacingId, replacementId] = [newId(now), newId(now), newId(now)];
  const ids = { id, reversalId, newId: replacingId, replacementId };
  const calls = merchant.isLimited ? limitedUpdates : updates;
  const row = await service.batcher.add(calls, bucket, { context, reference, amountUnits, ...ids });
  if (row.outcome === 'ok') return toUpdate(service.keys, row);
  if (row.outcome === '58') throw new Refusal('58', { data: toUpdate(service.keys, row) });
  throw refusalOf(row.outcome as Decline);
}

/**
 * Updates a redemption like `updateRedemption`. The same update again returns the first one.
 * @throws Refusal as `updateRedemption`; `58` only if the first update was to another amount
 */
export async function repeatUpdate(
  context: Context,
  request: { readonly reference: string; readonly amountUsed: number },
): Promise<{ readonly update: RedemptionUpdate; readonly replayed: boolean }> {
  try {
    return { update: await updateRedemption(context, request), replayed: false };
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== '58') throw error;
    const update = error.data as RedemptionUpdate;
    const amountUsed = update.replacement ? toNumber(update.replacement.amount) : 0;
    if (amountUsed !== request.amountUsed) throw error;
    return { update, replayed: true };
  }
}

/**
 * Returns the update of a redemption, by the redemption's reference (or transaction id).
 * @throws Refusal `18`, `60` if there is none
 */
export async function findUpdate(context: Context, reference: string): Promise<RedemptionUpdate> {
  checkLookupReference(reference);
  const { id, bucket } = await locateRedemption(context, reference);
  const { service } = context;
  const row = await service.batcher.add(lookups, bucket, { context, reference, id });
  if (!row) throw new Refusal('60');
  return toUpdate(service.keys, row);
}

async function locateRedemption({ service, merchant }: Context, reference: string): Promise<Located> {
  const [found] = await locate(service, merchant.id, ['redeem'], reference);
  if (!found) throw new Refusal('60');
  return found;
}
