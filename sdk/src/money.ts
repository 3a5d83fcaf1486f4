import type { Invalid } from './check.ts';

/** Currencies whose minor unit is no hundredth (ISO 4217), by their number of decimals. */
const UNUSUAL: readonly (readonly [number, string])[] = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
];

/** No currency has more. */
export const MOST_DECIMALS = 4;

/** The number of decimals of an ISO 4217 currency. */
export function currencyDecimals(currency: string): number {
  return UNUSUAL.find(([, codes]) => codes.split(' ').includes(currency))?.[0] ?? 2;
}

/**
 * Whether an amount can be sent: a number that says exactly one decimal, which the service keeps as it is. Nothing is
 * rounded: what a calculation left behind (0.1 + 0.2) is refused.
 * @param decimals at most so many behind the point
 * @param least `zero` where an amount may be nothing
 * @returns what is wrong with it, or undefined
 */
export function judgeAmount(
  value: unknown,
  decimals: number,
  least: 'above zero' | 'zero',
): Omit<Invalid, 'field'> | undefined {
  if (typeof value !== 'number') return { statusCode: '30', rule: 'type', message: 'must be a number' };
  const wrong = (message: string) => ({ statusCode: '13' as const, rule: 'amount', message });
  if (!Number.isFinite(value)) return wrong('must be a finite number');
  // Minus zero is what rounding leaves of a negative amount: as an update's amount it would give everything back.
  if (value < 0 || Object.is(value, -0)) return wrong('must not be negative');
  if (value === 0 && least === 'above zero') return wrong('must be above zero');
  const [, whole = '', fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
  // A number that is written with an exponent is beyond every currency: above the safe range, or far below its least unit.
  if (whole === '') return wrong(value < 1 ? `must have at most ${decimals} decimals` : 'is too large to be exact');
  if (fraction.length > decimals) {
    return wrong(`must have at most ${decimals} decimals; an amount is never rounded for you`);
  }
  const units = BigInt(whole + fraction);
  return units > BigInt(Number.MAX_SAFE_INTEGER) ? wrong('is too large to be exact') : undefined;
}
