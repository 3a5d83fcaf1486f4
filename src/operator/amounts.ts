import Type from 'typebox';
import { decimalsOf, toPositiveMinor } from '../money.ts';
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
