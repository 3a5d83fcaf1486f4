import { type Context, isSharded } from '../context.ts';
import { AGAIN, type Operation } from '../db/operation.ts';
import { type HotStatement, plainArray, textArray } from '../db/sql.ts';
import { checkReference, claimReference, type FoundVoucher, findVoucher } from '../ledger/claims.ts';
import { endHold, holdFloat, releaseHold, releaseVoided } from '../ledger/holds.ts';
import { newId } from '../ledger/id.ts';
import { ensureAccounts } from '../ledger/journal.ts';
import type { Outcome, Transaction } from '../ledger/transactions.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { toPositiveUnits, unitOf } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { recordDecline } from './declines.ts';
import { lookUp } from './look-up.ts';

export type Activate = {
  /**
   * The code (12 digits) and PIN (4 digits), or the serial number, for vouchers that the merchant generated
   * itself.
   */
  readonly voucher: { readonly code: string; readonly pin: string } | { readonly serialNumber: number };
  /** In major units; by default the value of the batch, otherwise 5000. */
  readonly value?: number | undefined;
  readonly reference?: string | undefined;
};

/** The value in major units if neither the batch nor the request has one. */
const DEFAULT_VALUE = 5_000n;

/** Decides and books a list of activations: sql/007-activate.sql. */
export const ACTIVATE: HotStatement = {
  name: 'activate',
  text: 'select * from activate($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)',
};

type Request = {
  readonly context: Context;
  readonly bucket: number;
  /** The id of the transaction; on several shards, that of its claim. */
  readonly id: string;
  /** The id of the event if this activation takes the float below its threshold. */
  readonly lowId: string;
  readonly codeKey: string | null;
  readonly pinKey: string | null;
  readonly serialNumber: number | null;
  readonly valueUnits: bigint | null;
  readonly reference: string | undefined;
  /** On several shards: whether the float is too low. */
  readonly isUnfunded?: boolean;
};

type Row = {
  readonly ord: number;
  /** The outcomes have the meaning that they have for a redemption. */
  readonly outcome: RefusalCode | 'ok' | 'replay' | 'account' | 'void';
  readonly id: string;
  readonly occurred_at: Date;
  readonly serial_number: bigint;
  readonly amount_minor: bigint;
  readonly decimals: number;
  readonly currency: string;
  readonly sealed: Buffer;
};

const byCode: Operation<Request, Row, Row> = {
  merchantOf: ({ context }) => context.merchant.id,
  keysOf({ codeKey, serialNumber, reference, context }) {
    const voucher = codeKey ?? String(serialNumber);
    return reference === undefined ? [voucher] : [voucher, `${context.merchant.id} ${reference}`];
  },
  async run(db, requests, bucket) {
    const { context } = requests.at(-1) as Request;
    const rows = await db.hot<Row>(
      ACTIVATE,
      [
        bucket,
        plainArray(requests.map((request) => request.context.merchant.id)),
        plainArray(requests.map(({ codeKey }) => codeKey)),
        plainArray(requests.map(({ pinKey }) => pinKey)),
        plainArray(requests.map(({ serialNumber }) => serialNumber)),
        plainArray(requests.map(({ valueUnits }) => valueUnits)),
        textArray(requests.map(({ reference }) => reference ?? null)),
        plainArray(requests.map(({ id }) => id)),
        plainArray(requests.map(({ lowId }) => lowId)),
        plainArray(requests.map(({ isUnfunded }) => String(isUnfunded ?? false))),
        isSharded(context.service),
        context.service.clock(),
      ],
      bucket,
    );
    const found: (Row | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
    for (const row of rows) found[row.ord - 1] = row;
    return found;
  },
  answer: (_, row) => row,
};

/**
 * The same by serial number, in separate calls. In one call, the code and the serial number of a voucher
 * would be two keys, and the call could contain the voucher twice.
 */
const bySerialNumber: Operation<Request, Row, Row> = { ...byCode };

/**
 * Activates a voucher, which gives it its value.
 * @throws Refusal `18`, `13`, `03`, `61`, `94`, `14`, `75`, `55`, `44`, `43`, `54`, `41`, `47`, `50`;
 *   `91` under overload
 */
export async function activate(context: Context, { voucher, value, reference }: Activate): Promise<Outcome> {
  if (reference !== undefined) checkReference(reference);
  const valueUnits = value === undefined ? null : toPositiveUnits(value);
  await permitAmount(context, 'activate', valueUnits);
  const { service, now } = context;
  const request = { context, id: newId(now), lowId: newId(now), valueUnits, reference };
  const find = isSharded(service) ? claimAndBook : book;
  const asked = { operation: 'activate', amountUnits: valueUnits, reference: reference ?? null } as const;
  if ('serialNumber' in voucher) {
    // A serial number is not secret, so an unknown one is not a guess.
    const { serialNumber } = voucher;
    const bucket = service.buckets.ofSerial(BigInt(serialNumber));
    const row = await find({ ...request, bucket, serialNumber, codeKey: null, pinKey: null });
    const outcome = toOutcome(
      row,
      reference,
      ({ serial_number, sealed }) => service.keys.open(serial_number, sealed).code,
    );
    if (typeof outcome !== 'string') return outcome;
    recordDecline(context, asked, outcome, { serialNumber: BigInt(serialNumber) });
    throw new Refusal(outcome);
  }
  const bucket = service.buckets.ofSlot(service.keys.slotOf(voucher.code));
  return lookUp(
    context,
    voucher,
    async (keys) =>
      toOutcome(
        await find({ ...request, ...keys, bucket, serialNumber: null }),
        reference,
        () => voucher.code,
      ),
    asked,
  );
}

/**
 * Books an activation, or finds the reason for its decline. A missing float is created first; since it is
 * empty, it declines the activation.
 */
async function book(request: Request): Promise<Row> {
  const { service, merchant } = request.context;
  const operation = request.codeKey === null ? bySerialNumber : byCode;
  for (;;) {
    const row = await service.batcher.add(operation, request.bucket, request);
    if (row.outcome !== 'account') return row;
    await ensureAccounts(service.db, merchant.id, row.currency);
  }
}

/**
 * On several shards: claims the reference in its bucket, then books under the claim's id in the bucket of the
 * voucher.
 */
async function claimAndBook(request: Request): Promise<Row | '94'> {
  const { context, reference, codeKey, bucket } = request;
  const { service, merchant, now } = context;
  const serialNumber = request.serialNumber === null ? null : BigInt(request.serialNumber);
  const found = await findVoucher(service, bucket, { codeKey, serialNumber });
  // By serial number, a voucher can be found only by the merchant that generated it.
  const voucher = codeKey === null && found?.merchant_id !== merchant.id ? undefined : found;
  if (isOfOtherValue(request, voucher)) return book(request);
  if (reference === undefined) return fundAndBook(request, voucher, new Set());
  const claim = {
    merchantId: merchant.id,
    operation: 'activate',
    reference,
    serialNumber: voucher?.serial_number ?? null,
    fingerprint: voucher ? String(valueFor(request, voucher) * unitOf(voucher.decimals)) : '',
  } as const;
  const voided = new Set<string>();
  for (let { id } = request; ; id = newId(now)) {
    const claimed = await claimReference(service, { ...claim, id }, voided);
    if (claimed === 'used') return '94';
    const row = await fundAndBook({ ...request, id: claimed ?? id }, voucher, voided);
    if (row.outcome !== 'void') return row;
    voided.add(claimed ?? id);
  }
}

/**
 * Whether the function will decline the value (`13`), whatever the reference was used for: by serial number,
 * the batch has another value, or the currency fewer decimals.
 */
function isOfOtherValue({ codeKey, valueUnits }: Request, voucher: FoundVoucher | undefined): boolean {
  if (codeKey !== null || valueUnits === null || !voucher) return false;
  const unit = unitOf(voucher.decimals);
  return valueUnits % unit !== 0n || valueUnits / unit !== (voucher.value_minor ?? valueUnits / unit);
}

/**
 * Returns the value in minor units: that of the batch, otherwise the requested one, otherwise the default.
 */
function valueFor({ valueUnits }: Request, { value_minor, decimals }: FoundVoucher): bigint {
  const unit = unitOf(decimals);
  return value_minor ?? (valueUnits === null ? (DEFAULT_VALUE * 10_000n) / unit : valueUnits / unit);
}

/**
 * On several shards, for a voucher that its batch has not paid for: its value moves from the float to the
 * transit account before the activation.
 * @param voided ids that this request has taken the reference from: money that they hold is no reason for a
 *   decline
 */
async function fundAndBook(
  request: Request,
  voucher: FoundVoucher | undefined,
  voided: ReadonlySet<string>,
): Promise<Row> {
  if (!voucher || voucher.value_minor !== null) return book(request);
  const { context, id, lowId, bucket } = request;
  const { service, merchant } = context;
  const hold = {
    id,
    lowId,
    merchantId: merchant.id,
    currency: voucher.currency,
    bucket,
    serialNumber: voucher.serial_number,
  };
  const wanted = { ...hold, amountMinor: valueFor(request, voucher) };
  let isFunded = await holdFloat(service, wanted);
  if (!isFunded && voided.size > 0) {
    await Promise.all([...voided].map((other) => releaseVoided(service, merchant.id, other)));
    isFunded = await holdFloat(service, wanted);
  }
  const row = await book({ ...request, isUnfunded: !isFunded });
  if (!isFunded) return row;
  if (row.outcome === 'ok' || row.outcome === 'replay') await endHold(service, id);
  else await releaseHold(service, hold);
  return row;
}

/**
 * Returns the outcome of a booked activation.
 * @param codeOf opens the code if the request did not contain it: after the booking, for this request only
 */
function toOutcome(
  row: Row | '94',
  reference: string | undefined,
  codeOf: (row: Row) => string,
): Outcome | RefusalCode {
  if (row === '94') return row;
  const { outcome } = row;
  if (outcome !== 'ok' && outcome !== 'replay') return outcome as RefusalCode;
  const transaction: Transaction = {
    transactionId: row.id,
    type: 'ACTIVATION',
    amount: { minor: row.amount_minor, decimals: row.decimals },
    timestamp: row.occurred_at,
    reference: reference ?? null,
    code: codeOf(row),
    serialNumber: row.serial_number,
    refundStatus: null,
    note: null,
  };
  return { transaction, replayed: outcome === 'replay' };
}
