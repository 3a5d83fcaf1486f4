import type { Context, Service } from '../context.ts';
import { isKeyId } from '../credentials.ts';
import { calling, type Operation } from '../db/operation.ts';
import { type HotStatement, plainArray, sql, textArray } from '../db/sql.ts';
import type { Decline } from '../refusal.ts';
import {
  type ClaimedOperation,
  claimReference,
  type FoundVoucher,
  findClaim,
  findVoucher,
} from './claims.ts';
import { endHold, holdFloat, releaseHold, releaseVoided } from './holds.ts';
import { newId } from './id.ts';
import { ensureAccounts } from './journal.ts';
import type { Outcome } from './transaction.ts';

/**
 * Books the requests of merchants under their references, and finds what was booked under one. Only this file
 * knows whether a reference and its voucher may be on different servers.
 *
 * On one server, the function that books a request also claims its reference. On several shards
 * (docs/how-to/citus.md), the reference is claimed first, and money from a float is held first. Then the
 * function books under the id of the claim.
 */

/** A request about a voucher, which is found by the key of its code or by its serial number. */
export type BookingRequest = {
  readonly context: Context;
  /** The bucket of the voucher. */
  readonly bucket: number;
  readonly codeKey: string | null;
  readonly serialNumber: bigint | null;
  readonly reference: string | undefined;
  /** The id of the transaction. */
  readonly id: string;
  /** Whether the id and the reference were claimed before. */
  readonly isClaimed?: boolean;
  /** Whether the float did not cover the amount that was to be held. */
  readonly isUnfunded?: boolean;
};

/** The row of a request from the function that decides and books it. */
export type Booked = {
  /**
   * `account`: the merchant has no account in this currency yet. `void`: another request has taken the claim
   * over.
   */
  readonly outcome: Decline | 'ok' | 'replay' | 'account' | 'void';
  readonly id: string;
  readonly occurred_at: Date;
  readonly serial_number: bigint;
  readonly amount_minor: bigint;
  readonly decimals: number;
  readonly currency: string;
};

/** Returns the API key that the books name for a request; null if it is not from a key. */
export function askedBy({ keyId }: Context): string | null {
  return isKeyId(keyId) ? keyId : null;
}

/**
 * Returns the ids of new events about daily limits, for the requests of a call; null if no limit bounds them.
 */
export function limitIds(requests: readonly { readonly context: Context }[]): string | null {
  const context = requests[0]?.context;
  return context?.merchant.isLimited ? plainArray(requests.map(() => newId(context.service.clock()))) : null;
}

/** What a request means for a voucher. */
type Terms = {
  /** Identifies a repeat of the request, together with the voucher. */
  readonly fingerprint: string;
  /** The amount that the float pays; null if it pays nothing. */
  readonly priceMinor: bigint | null;
};

/** An operation that books under a reference. */
type Booking<Asked extends BookingRequest, Row extends Booked> = {
  readonly operation: ClaimedOperation;
  readonly type: 'ACTIVATION' | 'REDEMPTION';
  /** Calls the function that decides and books. */
  readonly run: Operation<Asked, Row, Row>['run'];
  /** Returns undefined if the function declines the request whatever its reference was used for. */
  readonly termsOf: (request: Asked, voucher: FoundVoucher) => Terms | undefined;
};

/** The same with its batched calls. */
type Batched<Asked extends BookingRequest, Row extends Booked> = Booking<Asked, Row> & {
  readonly byCode: Operation<Asked, Row, Row>;
  readonly bySerialNumber: Operation<Asked, Row, Row>;
  /** The same for merchants with daily limits. */
  readonly limited: Pick<Batched<Asked, Row>, 'byCode' | 'bySerialNumber'>;
};

/**
 * Declares an operation that books under a reference. Requests by code and by serial number are in separate
 * calls. In one call, the code and the serial number of a voucher would be two keys, and the call could
 * contain the voucher twice. Requests of merchants with daily limits are in calls of their own, since they
 * wait for locks that others do not need. One call contains one activation of such a merchant: otherwise one
 * that the float does not cover could take the place of another under the limit.
 */
export function booking<Asked extends BookingRequest, Row extends Booked>(
  declared: Booking<Asked, Row>,
): Batched<Asked, Row> {
  const byCode: Operation<Asked, Row, Row> = {
    merchantOf: ({ context }) => context.merchant.id,
    keysOf({ codeKey, serialNumber, reference, context }) {
      const voucher = codeKey ?? String(serialNumber);
      return reference === undefined ? [voucher] : [voucher, `${context.merchant.id} ${reference}`];
    },
    run: declared.run,
    answer: (_, row) => row,
  };
  const turn = ({ context }: Asked) =>
    declared.operation === 'activate' ? [`limits of ${context.merchant.id}`] : [];
  const limited = { ...byCode, keysOf: (request: Asked) => [...byCode.keysOf(request), ...turn(request)] };
  return {
    ...declared,
    byCode,
    bySerialNumber: { ...byCode },
    limited: { byCode: limited, bySerialNumber: { ...limited } },
  };
}

/**
 * Books a request, or finds the reason for its decline.
 * @param codeOf returns the code of the voucher after the booking, for this request only
 */
export async function book<Asked extends BookingRequest, Row extends Booked>(
  kind: Batched<Asked, Row>,
  request: Asked,
  codeOf: (row: Row) => string,
): Promise<Outcome | Decline> {
  const { isSharded } = request.context.service.buckets;
  const row = await (isSharded ? claimAndSend : send)(kind, request);
  if (row === '94') return row;
  const { outcome } = row;
  if (outcome !== 'ok' && outcome !== 'replay') return outcome as Decline;
  return {
    transaction: {
      transactionId: row.id,
      type: kind.type,
      amount: { minor: row.amount_minor, decimals: row.decimals },
      timestamp: row.occurred_at,
      reference: request.reference ?? null,
      code: codeOf(row),
      serialNumber: row.serial_number,
      refundStatus: null,
      note: null,
    },
    replayed: outcome === 'replay',
  };
}

/** Sends a request to its function. A missing account of the merchant is created first. */
async function send<Asked extends BookingRequest, Row extends Booked>(
  kind: Batched<Asked, Row>,
  request: Asked,
): Promise<Row> {
  const { service, merchant } = request.context;
  const { byCode, bySerialNumber } = merchant.isLimited ? kind.limited : kind;
  const calls = request.codeKey === null ? bySerialNumber : byCode;
  for (;;) {
    const row = await service.batcher.add(calls, request.bucket, request);
    if (row.outcome !== 'account') return row;
    await ensureAccounts(service.db, merchant.id, row.currency);
  }
}

async function claimAndSend<Asked extends BookingRequest, Row extends Booked>(
  kind: Batched<Asked, Row>,
  asked: Asked,
): Promise<Row | '94'> {
  const request = { ...asked, isClaimed: true };
  const { operation } = kind;
  const { context, reference } = request;
  const { service, merchant } = context;
  // A redemption without a reference claims nothing and holds nothing.
  if (operation === 'redeem' && reference === undefined) return send(kind, request);
  const voucher = await findVoucher(service, { ...request, merchantId: merchant.id });
  const terms = voucher && kind.termsOf(request, voucher);
  if (voucher && !terms) return send(kind, request);
  const pay = { voucher, priceMinor: terms?.priceMinor ?? null, voided: new Set<string>() };
  if (reference === undefined) return holdAndSend(kind, request, pay);
  const claim = {
    merchantId: merchant.id,
    operation,
    reference,
    serialNumber: voucher?.serial_number ?? null,
    fingerprint: terms?.fingerprint ?? '',
  };
  // A new id has the time of the clock: that of the request may be too old, if the clock was corrected since.
  for (let { id } = request; ; id = newId(service.clock())) {
    const claimed = await claimReference(service, { ...claim, id }, pay.voided);
    if (claimed === 'used') return '94';
    // An unknown code takes the same path as any other, so that the time reveals nothing.
    const row = await holdAndSend(kind, { ...request, id: claimed ?? id }, pay);
    if (row.outcome !== 'void') return row;
    pay.voided.add(claimed ?? id);
  }
}

/**
 * Moves the price from the float to the transit account, if the float pays, and then sends the request.
 * @param pay.voided ids that this request has taken the reference from: money that they hold is no reason for
 *   a decline
 */
async function holdAndSend<Asked extends BookingRequest, Row extends Booked>(
  kind: Batched<Asked, Row>,
  request: Asked,
  {
    voucher,
    priceMinor,
    voided,
  }: {
    readonly voucher: FoundVoucher | undefined;
    readonly priceMinor: bigint | null;
    readonly voided: ReadonlySet<string>;
  },
): Promise<Row> {
  if (!voucher || priceMinor === null) return send(kind, request);
  const { context, id, bucket } = request;
  const { service, merchant } = context;
  const { currency, serial_number: serialNumber } = voucher;
  const hold = { id, merchantId: merchant.id, currency, amountMinor: priceMinor, bucket, serialNumber };
  let isFunded = await holdFloat(service, hold);
  if (!isFunded && voided.size > 0) {
    await Promise.all([...voided].map((other) => releaseVoided(service, merchant.id, other)));
    isFunded = await holdFloat(service, hold);
  }
  const row = await send(kind, { ...request, isUnfunded: !isFunded });
  if (!isFunded) return row;
  if (row.outcome === 'ok' || row.outcome === 'replay') await endHold(service, id);
  else await releaseHold(service, hold);
  return row;
}

/** A transaction that may have been booked. The id is null on one server, where the call itself finds it. */
export type Located = { readonly id: string | null; readonly bucket: number };

/**
 * Finds the transactions that a reference may mean, in the order of these operations. A transaction without a
 * reference is found by its id. Claims whose transaction was never booked are included.
 */
export async function locate(
  service: Service,
  merchantId: number,
  operations: readonly ClaimedOperation[],
  reference: string,
): Promise<readonly Located[]> {
  const { buckets, db } = service;
  if (!buckets.isSharded) return [{ id: null, bucket: buckets.ofSlot(0) }];
  const claims = await Promise.all(
    operations.map((operation) => findClaim(service, { merchantId, operation, reference })),
  );
  const claimed = claims.flatMap((claim) =>
    claim?.serial_number == null ? [] : [{ id: claim.id, bucket: buckets.ofSerial(claim.serial_number) }],
  );
  // A merchant's transaction without a reference by its id. It asks every shard.
  return claimed.length > 0
    ? claimed
    : db.query<Located>(sql`
select id, bucket from journal
where merchant_id = ${merchantId} and id = uuid_from(${reference}) and kind in ('ACTIVATION', 'REDEMPTION')
  and reference is null and original_id is null and batch_id is null`);
}

/**
 * Finds what a merchant booked under a reference or, if it has none, by its transaction id. On several shards
 * it may be claimed, and never have been booked.
 */
export async function findBooking(
  { service, merchant }: Context,
  operation: ClaimedOperation,
  reference: string,
): Promise<{ readonly id: string; readonly serialNumber: bigint } | undefined> {
  const { id: merchantId } = merchant;
  const claim = await findClaim(service, { merchantId, operation, reference });
  if (claim?.serial_number != null) return { id: claim.id, serialNumber: claim.serial_number };
  const [found] = await service.db.query<{ id: string; serialNumber: bigint }>(sql`
select id, serial_number as "serialNumber" from journal
where merchant_id = ${merchantId} and id = uuid_from(${reference})
  and kind = ${operation === 'redeem' ? 'REDEMPTION' : 'ACTIVATION'}::entry_kind
  and reference is null and original_id is null and batch_id is null`);
  return found;
}

/** A look-up of a transaction of a merchant by its reference. */
export type Lookup = {
  readonly context: Context;
  readonly reference: string;
  /** The transaction; null if the call finds it by the reference. */
  readonly id: string | null;
};

/** Declares an operation that finds transactions by references. Its row is undefined if there is none. */
export function lookingUp<Row>(statement: HotStatement): Operation<Lookup, Row | undefined, Row | undefined> {
  return {
    merchantOf: ({ context }) => context.merchant.id,
    keysOf: () => [],
    run: calling(
      statement,
      (requests) => [
        plainArray(requests.map(({ context }) => context.merchant.id)),
        textArray(requests.map(({ reference }) => reference)),
        locatedIds(requests),
      ],
      undefined,
    ),
    answer: (_, row) => row,
  };
}

/** Returns the ids of a call as its parameter: null for all if the call finds them itself. */
export function locatedIds(requests: readonly Pick<Located, 'id'>[]): string | null {
  return requests[0]?.id === null ? null : plainArray(requests.map(({ id }) => id));
}
