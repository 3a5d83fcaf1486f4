import type { Queries } from '../db/pool.ts';
import type { Money } from '../money.ts';
import type { Line, Settlement } from './settlements.ts';
import { type RateRow, sumFees } from './terms.queries.ts';

/** The way from the redemptions of a settlement to its payout. */

/**
 * The steps, in their order. Those up to `PAID_EARLIER` add up to `CLOSING`; with `CLOSING`, the rest but
 * `PAYABLE` add up to `PAYABLE`.
 */
export const STEPS = [
  'CARRIED',
  'REDEEMED',
  'REVERSED',
  'EARLIER_REVERSAL',
  'COMMISSION',
  'COMMISSION_VAT',
  'OTHER',
  'PAID_EARLIER',
  'CLOSING',
  'OUTSTANDING',
  'CARRIED_ON',
  'PAYABLE',
] as const;
export type StepKind = (typeof STEPS)[number];
export type Step = { readonly kind: StepKind; readonly amount: Money };

/** The steps of movements. All other movements belong to `OTHER`. */
const STEP_OF: Readonly<Record<string, StepKind>> = {
  REDEMPTION: 'REDEEMED',
  REDEMPTION_REVERSAL: 'REVERSED',
  EARLIER_REVERSAL: 'EARLIER_REVERSAL',
  FEE: 'COMMISSION',
  FEE_REVERSAL: 'COMMISSION',
  FEE_VAT: 'COMMISSION_VAT',
  FEE_VAT_REVERSAL: 'COMMISSION_VAT',
  PAYOUT: 'PAID_EARLIER',
  PAYOUT_RETURN: 'PAID_EARLIER',
};

/** Returns the steps of a settlement. An amount that reduces the payout is negative. */
export function stepsOf(settlement: Settlement, lines: readonly Line[]): Step[] {
  const { carried, closing, outstanding, payable } = settlement;
  const minors: Partial<Record<StepKind, bigint>> = {
    CARRIED: carried.minor,
    CLOSING: closing.minor,
    OUTSTANDING: -outstanding.minor,
    CARRIED_ON: payable.minor + outstanding.minor - closing.minor,
    PAYABLE: payable.minor,
  };
  for (const { kind, amount } of lines) {
    const step = STEP_OF[kind] ?? 'OTHER';
    minors[step] = (minors[step] ?? 0n) + amount.minor;
  }
  return STEPS.map((kind) => ({ kind, amount: { minor: minors[kind] ?? 0n, decimals: payable.decimals } }));
}

/** The commission that a settlement deducts at one rate, and the VAT on it. */
export type FeeRate = {
  readonly commissionPpm: number;
  readonly vatPpm: number;
  /** Redemptions less reversals. */
  readonly base: Money;
  readonly fee: Money;
  readonly vat: Money;
};

export async function ratesOf(db: Queries, settlement: Settlement): Promise<FeeRate[]> {
  const { merchantId, currency, firstDay, lastDay, payable } = settlement;
  const money = (minor: bigint) => ({ minor, decimals: payable.decimals });
  const rows = await db.query<RateRow>(sumFees(merchantId, currency, firstDay, lastDay));
  return rows.map((row) => ({
    commissionPpm: row.commission_ppm,
    vatPpm: row.vat_ppm,
    base: money(row.net_minor),
    fee: money(row.fee_minor),
    vat: money(row.vat_minor),
  }));
}
