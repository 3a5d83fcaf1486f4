import Type from 'typebox';
import { decimalsOf, parseDecimal, toPositiveMinor } from '../money.ts';
import { invalid } from './problem.ts';

export const Currency = Type.String({
  pattern: '^[A-Z]{3}$',
  description: 'A code of ISO 4217.',
  examples: ['USD'],
});

/** An amount above zero, in major units; the core refuses more decimals than the currency has. */
export function Amount(description: string) {
  return Type.Number({ exclusiveMinimum: 0, maximum: 999_999_999_999_999, description, examples: [25] });
}

/** @throws Problem that names the field, for what is no currency */
export function requireDecimals(currency: string, field = 'currency'): number {
  const decimals = decimalsOf(currency);
  if (decimals === undefined)
    throw invalid(field, 'currency', 'must be a code of ISO 4217, such as USD or EUR');
  return decimals;
}

/** An amount in minor units. @throws Problem that names the field, for more decimals than the currency has */
export function minorOf(value: number, currency: string, field: string): bigint {
  const decimals = requireDecimals(currency);
  try {
    return toPositiveMinor(value, decimals);
  } catch {
    throw invalid(
      field,
      'amount',
      `must be above zero and not too large, and ${currency} has ${decimals} decimals`,
    );
  }
}

export const PERCENT_PPM = 10_000;
const PERCENT_DECIMALS = 4;

/** A percentage with up to four decimals. */
export function Percent(description: string) {
  return Type.Number({ minimum: 0, maximum: 100, description, examples: [2.5] });
}

/** Percent as parts per million. @throws Problem that names the field, for more than four decimals */
export function toPpm(percent: number, field: string): number {
  const decimal = parseDecimal(String(percent));
  if (!decimal || decimal.scale > PERCENT_DECIMALS)
    throw invalid(field, 'decimals', 'has up to four decimals, such as 2.5');
  return Number(decimal.digits) * 10 ** (PERCENT_DECIMALS - decimal.scale);
}
