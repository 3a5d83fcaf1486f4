import type { Context } from '../context.ts';
import { AGAIN, calling } from '../db/operation.ts';
import { type HotStatement, plainArray, textArray } from '../db/sql.ts';
import { askedBy, type Booked, type BookingRequest, book, booking, limitIds } from '../ledger/booking.ts';
import { checkReference } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import type { Outcome } from '../ledger/transaction.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { toPositiveUnits, unitOf } from '../money.ts';
import { codeOf, refusalOf } from '../refusal.ts';
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
  text: `
select ord, outcome, id, occurred_at, serial_number, amount_minor, decimals, currency, sealed
from activate($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
};

type Request = BookingRequest & { readonly pinKey: string | null; readonly valueUnits: bigint | null };

type Row = Booked & { readonly sealed: Buffer };

const activations = booking<Request, Row>({
  operation: 'activate',
  type: 'ACTIVATION',
  run: calling(
    ACTIVATE,
    (requests) => {
      const { context, isClaimed = false } = requests.at(-1) as Request;
      const now = context.service.clock();
      return [
        plainArray(requests.map((request) => request.context.merchant.id)),
        plainArray(requests.map((request) => askedBy(request.context))),
        plainArray(requests.map(({ codeKey }) => codeKey)),
        plainArray(requests.map(({ pinKey }) => pinKey)),
        plainArray(requests.map(({ serialNumber }) => serialNumber)),
        plainArray(requests.map(({ valueUnits }) => valueUnits)),
        textArray(requests.map(({ reference }) => reference ?? null)),
        plainArray(requests.map(({ id }) => id)),
        plainArray(requests.map(() => newId(now))),
        plainArray(requests.map(({ isUnfunded }) => String(isUnfunded ?? false))),
        isClaimed,
        limitIds(requests),
        now,
      ];
    },
    AGAIN,
  ),
  // The value is that of the batch, otherwise the requested one, otherwise the default.
  termsOf({ codeKey, valueUnits }, { value_minor, decimals }) {
    const unit = unitOf(decimals);
    const valueMinor = value_minor ?? (valueUnits ?? DEFAULT_VALUE * 10_000n) / unit;
    // By serial number, another value than that of the batch, or one with too many decimals, is always 13.
    if (codeKey === null && valueUnits !== null && valueUnits !== valueMinor * unit) return undefined;
    return {
      fingerprint: String(valueMinor * unit),
      priceMinor: value_minor === null ? valueMinor : null,
    };
  },
});

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
  const request = { context, id: newId(now), valueUnits, reference };
  const asked = { operation: 'activate', amountUnits: valueUnits, reference: reference ?? null } as const;
  if ('serialNumber' in voucher) {
    // A serial number is not secret, so an unknown one is not a guess.
    const serialNumber = BigInt(voucher.serialNumber);
    const bucket = service.buckets.ofSerial(serialNumber);
    const outcome = await book(
      activations,
      { ...request, bucket, serialNumber, codeKey: null, pinKey: null },
      ({ serial_number, sealed }) => service.keys.open(serial_number, sealed).code,
    );
    if (typeof outcome !== 'string') return outcome;
    recordDecline(context, asked, codeOf(outcome), { serialNumber });
    throw refusalOf(outcome);
  }
  return lookUp(
    context,
    voucher,
    (keys) => book(activations, { ...request, ...keys, serialNumber: null }, () => voucher.code),
    asked,
  );
}
