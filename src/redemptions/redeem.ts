import type { Context } from '../context.ts';
import { AGAIN, calling } from '../db/operation.ts';
import { type HotStatement, plainArray, textArray } from '../db/sql.ts';
import { askedBy, type Booked, type BookingRequest, book, booking, limitIds } from '../ledger/booking.ts';
import { checkReference } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import type { Outcome } from '../ledger/transaction.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { toPositiveUnits } from '../money.ts';
import { lookUp } from '../vouchers/look-up.ts';

/** Decides and books a list of redemptions: sql/006-redeem.sql, the heart of the program. */
export const REDEEM: HotStatement = {
  name: 'redeem',
  text: `
select ord, outcome, id, occurred_at, serial_number, amount_minor, decimals, currency
from redeem($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
};

export type Redeem = {
  /** The code: 12 digits. */
  readonly code: string;
  /** The PIN: 4 digits. */
  readonly pin: string;
  /** The amount in major units, as in the JSON. */
  readonly amount: number;
  readonly reference?: string | undefined;
};

type Request = BookingRequest & {
  readonly codeKey: string;
  readonly pinKey: string;
  readonly amountUnits: bigint;
};

const redemptions = booking<Request, Booked>({
  operation: 'redeem',
  type: 'REDEMPTION',
  run: calling(
    REDEEM,
    (requests) => [
      plainArray(requests.map((request) => request.context.merchant.id)),
      plainArray(requests.map((request) => askedBy(request.context))),
      plainArray(requests.map(({ codeKey }) => codeKey)),
      plainArray(requests.map(({ pinKey }) => pinKey)),
      plainArray(requests.map(({ amountUnits }) => amountUnits)),
      textArray(requests.map(({ reference }) => reference ?? null)),
      plainArray(requests.map(({ id }) => id)),
      requests[0]?.isClaimed ?? false,
      limitIds(requests),
      requests.at(-1)?.context.service.clock(),
    ],
    AGAIN,
  ),
  termsOf: ({ amountUnits }) => ({ fingerprint: String(amountUnits), priceMinor: null }),
});

/**
 * Redeems an amount from a voucher: the whole amount or nothing. The same request again under its reference
 * is a replay.
 * @throws Refusal `18`, `13`, `03`, `94`, `14`, `75`, `55`, `44`, `43`, `54`, `40`, `47`, `42`, `51`;
 *   `91` under overload
 */
export async function redeem(context: Context, request: Redeem): Promise<Outcome> {
  if (request.reference !== undefined) checkReference(request.reference);
  const amountUnits = toPositiveUnits(request.amount);
  await permitAmount(context, 'redeem', amountUnits);
  const { code, reference } = request;
  const wanted = { context, serialNumber: null, id: newId(context.now), amountUnits, reference };
  return lookUp(context, request, (keys) => book(redemptions, { ...wanted, ...keys }, () => code), {
    operation: 'redeem',
    amountUnits,
    reference: reference ?? null,
  });
}
