import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { calling, type Operation } from '../db/operation.ts';
import type { Queries } from '../db/pool.ts';
import { type HotStatement, plainArray, sql, textArray } from '../db/sql.ts';
import { Refusal } from '../refusal.ts';
import type { MovementOperation } from './kinds.ts';

/**
 * Claims references on several shards (sql/008-claims.sql). On one server, the functions that book a request
 * also make its claim.
 */

export const FIND_VOUCHERS: HotStatement = {
  name: 'find-vouchers',
  text: 'select * from find_vouchers($1, $2, $3)',
};

export const CLAIM: HotStatement = { name: 'claim', text: 'select * from claim($1, $2, $3, $4, $5, $6, $7)' };

export const VOID_TRANSACTION: HotStatement = {
  name: 'void-transaction',
  text: 'select void_transaction($1, $2, $3) as done',
};

export const REASSIGN_CLAIM: HotStatement = {
  name: 'reassign-claim',
  text: 'select reassign_claim($1, $2, $3, $4, $5, $6, $7, $8) as done',
};

/** A voucher as it was found before a claim. */
export type FoundVoucher = {
  readonly serial_number: bigint;
  /** The merchant that generated it. */
  readonly merchant_id: number;
  /** The value of the batch; null if it is given at activation. */
  readonly value_minor: bigint | null;
  readonly decimals: number;
  readonly currency: string;
};

/** A voucher by the key of its code, or by its serial number. */
type Wanted = {
  readonly bucket: number;
  readonly codeKey: string | null;
  readonly serialNumber: bigint | null;
  readonly merchantId: number;
};

const findVouchers: Operation<Wanted, FoundVoucher | undefined, FoundVoucher | undefined> = {
  keysOf: () => [],
  run: calling(
    FIND_VOUCHERS,
    (wanted) => [
      plainArray(wanted.map(({ codeKey }) => codeKey)),
      plainArray(wanted.map(({ serialNumber }) => serialNumber)),
    ],
    undefined,
  ),
  // By serial number, a voucher can be found only by the merchant that generated it.
  answer: ({ codeKey, merchantId }, row) =>
    codeKey === null && row?.merchant_id !== merchantId ? undefined : row,
};

/** Finds a voucher of a completed batch. Returns undefined if there is none. */
export function findVoucher({ batcher }: Service, wanted: Wanted): Promise<FoundVoucher | undefined> {
  return batcher.add(findVouchers, wanted.bucket, wanted);
}

export type ClaimedOperation = 'activate' | 'redeem';

type ClaimRequest = {
  readonly merchantId: number;
  readonly operation: ClaimedOperation;
  readonly reference: string;
  /** The id of the transaction; null to read without making a claim. */
  readonly id: string | null;
  readonly serialNumber: bigint | null;
  readonly fingerprint: string;
};

type Claim = { readonly id: string; readonly serial_number: bigint | null; readonly fingerprint: string };

const claims: Operation<ClaimRequest, Claim | undefined, Claim | undefined> = {
  merchantOf: ({ merchantId }) => merchantId,
  keysOf: ({ merchantId, operation, reference }) => [`${merchantId} ${operation} ${reference}`],
  run: calling(
    CLAIM,
    (requests) => [
      plainArray(requests.map(({ merchantId }) => merchantId)),
      textArray(requests.map(({ operation }) => operation)),
      textArray(requests.map(({ reference }) => reference)),
      plainArray(requests.map(({ id }) => id)),
      plainArray(requests.map(({ serialNumber }) => serialNumber)),
      textArray(requests.map(({ fingerprint }) => fingerprint)),
    ],
    undefined,
  ),
  answer: (_, row) => row,
};

/** Finds the claim of a reference, without making one. */
export function findClaim(
  { batcher, buckets }: Service,
  claimed: Pick<ClaimRequest, 'merchantId' | 'operation' | 'reference'>,
): Promise<Claim | undefined> {
  const { merchantId, operation, reference } = claimed;
  const request = { ...claimed, id: null, serialNumber: null, fingerprint: '' };
  return batcher.add(claims, buckets.ofReference(merchantId, operation, reference), request);
}

/**
 * Claims the reference of a request.
 * @param request.serialNumber of its voucher; null if it is unknown: then nothing is claimed
 * @param request.id the id of its transaction, if the claim is new
 * @param voided the ids that were voided for this request, both its own and those of others; more are added
 * @returns the id to continue with; `used` if another request has used the reference (`94`); undefined
 *   if the voucher is unknown and the reference is free
 */
export async function claimReference(
  service: Service,
  request: ClaimRequest & { readonly id: string },
  voided: Set<string>,
): Promise<string | 'used' | undefined> {
  const { buckets, batcher } = service;
  const { merchantId, operation, reference, serialNumber, fingerprint, id } = request;
  const bucket = buckets.ofReference(merchantId, operation, reference);
  const wanted = serialNumber === null ? { ...request, id: null } : request;
  for (;;) {
    const claim = await batcher.add(claims, bucket, wanted);
    if (!claim) return undefined;
    if (claim.serial_number === null) return 'used';
    const isSame =
      serialNumber !== null && claim.serial_number === serialNumber && claim.fingerprint === fingerprint;
    if (isSame && !voided.has(claim.id)) return claim.id;
    if (!voided.has(claim.id)) {
      await letBook(voided.size);
      if (!(await voidTransaction(service, claim.id, claim.serial_number))) return 'used';
    }
    voided.add(claim.id);
    if (serialNumber === null) return undefined;
    if (await reassign(service, bucket, request, claim.id, id)) return id;
  }
}

/** The fingerprint of a reference that was given up. No request has it. */
const GIVEN_UP = 'given-up';

/**
 * Claims the reference of a redemption without a voucher, so that it can no longer be booked: any request
 * under it is `94`. A claim whose transaction was not booked yet is taken over.
 * @param request.id the id of the claim, if it is new
 * @returns false if a redemption was booked under the reference
 */
export async function giveUpReference(
  service: Service,
  request: Pick<ClaimRequest, 'merchantId' | 'reference'> & { readonly id: string },
): Promise<boolean> {
  const { buckets, batcher } = service;
  const wanted = { ...request, operation: 'redeem', serialNumber: null, fingerprint: GIVEN_UP } as const;
  const bucket = buckets.ofReference(wanted.merchantId, wanted.operation, wanted.reference);
  for (;;) {
    const claim = await batcher.add(claims, bucket, wanted);
    if (!claim) throw new Error('a reference was claimed, and no claim stands');
    if (claim.serial_number === null) return true;
    // On one server, a claim is written together with its booking.
    if (!buckets.isSharded) return false;
    if (!(await voidTransaction(service, claim.id, claim.serial_number))) return false;
    if (await reassign(service, bucket, wanted, claim.id, wanted.id)) return true;
  }
}

/** The usual time of a booking under a claim is some tens of milliseconds. */
const BOOKING_MS = 20;
const WAIT_MAX_MS = 1_000;

/**
 * Waits so that another request can book. Two requests could otherwise take the reference from each other
 * forever. From the second time on, each waits for a random and growing time.
 */
async function letBook(times: number): Promise<void> {
  if (times > 0) await sleep(Math.random() * Math.min(BOOKING_MS * 2 ** times, WAIT_MAX_MS));
}

/** The money operations of the operator. Operations that concern no merchant use 0. */
export type OperatorOperation = Exclude<MovementOperation, ClaimedOperation>;

/**
 * Claims the reference of an operation without a voucher, in the transaction that books it.
 * @returns the claim: with the given id if it is new; otherwise the caller compares its fingerprint
 */
export async function claimIn(
  tx: Queries,
  { buckets }: Service,
  request: {
    readonly merchantId: number;
    readonly operation: 'generate' | OperatorOperation;
    readonly reference: string;
    readonly id: string;
    readonly fingerprint: string;
  },
): Promise<Claim> {
  const { merchantId, operation, reference, id, fingerprint } = request;
  const bucket = buckets.ofReference(merchantId, operation, reference);
  const [claim] = await tx.query<Claim>(sql`
select * from claim(${bucket}, array[${merchantId}::int], array[${operation}::operation],
  array[${reference}::text], array[${id}::uuid], array[null::bigint], array[${fingerprint}::text])`);
  if (!claim) throw new Error('a reference was claimed, and no claim stands');
  return claim;
}

/** Ensures that a transaction is never booked. Returns false if it was booked already. */
export async function voidTransaction(
  { db, buckets }: Service,
  id: string,
  serialNumber: bigint,
): Promise<boolean> {
  const bucket = buckets.ofSerial(serialNumber);
  const [row] = await db.hot<{ done: boolean }>(VOID_TRANSACTION, [bucket, serialNumber, id], bucket);
  return row?.done ?? false;
}

async function reassign(
  { db }: Service,
  bucket: number,
  request: ClaimRequest,
  from: string,
  to: string,
): Promise<boolean> {
  const { merchantId, operation, reference, serialNumber, fingerprint } = request;
  const values = [bucket, operation, merchantId, reference, from, to, serialNumber, fingerprint];
  const [row] = await db.hot<{ done: boolean }>(REASSIGN_CLAIM, values, bucket);
  return row?.done ?? false;
}

const LONGEST = 100;

/**
 * Refuses (`18`) text that cannot be a merchant's reference. A reference has 1 to 100 characters, no control
 * characters, and well-formed Unicode (two broken spellings would be stored as one). It does not begin with
 * `CANCEL-` or `NEW-`.
 */
export function checkReference(reference: string): void {
  if (!isReference(reference) || /^(CANCEL|NEW)-/.test(reference)) throw new Refusal('18');
}

/** Like `checkReference`, for a look-up: `CANCEL-x` and `NEW-x` are well-formed, but are never found. */
export function checkLookupReference(reference: string): void {
  if (!isReference(reference)) throw new Refusal('18');
}

/** Whether a text has the form of a reference. */
export function isReference(reference: string): boolean {
  // A character has at most two units, so text beyond twice the limit need not be counted.
  if (reference.length === 0 || reference.length > 2 * LONGEST || !reference.isWellFormed()) return false;
  return !/\p{Cc}/u.test(reference) && (reference.length <= LONGEST || [...reference].length <= LONGEST);
}
