import { Refusal } from './refusal.ts';

/**
 * An exact amount: minor units of a currency with `decimals` decimals. 12.50 USD is { minor: 1250n, decimals:
 * 2 }.
 */
export type Money = { readonly minor: bigint; readonly decimals: number };

/** The highest number of decimals of an ISO 4217 currency. */
export const DECIMALS_MAX = 4;

/**
 * The highest number of minor units of an amount: fifteen digits. A JSON number (a double) represents these
 * exactly, whatever the position of the decimal point. Above it, two neighboring cents can be the same
 * number.
 */
export const MINOR_MAX = 10n ** 15n - 1n;

/**
 * The highest number of ten-thousandths of an amount whose currency is not known yet. It is the maximum for
 * two decimals, which nearly all currencies have.
 */
const UNITS_MAX = MINOR_MAX * 100n;

/** Returns the ten-thousandths of a major unit in one minor unit: 100 with two decimals. */
export function unitOf(decimals: number): bigint {
  return 10n ** BigInt(DECIMALS_MAX - decimals);
}

/**
 * Currencies whose minor unit is not a hundredth (ISO 4217). All other codes known to the runtime have
 * two decimals.
 */
const DECIMALS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ').map((code) => [code, 0]),
  ),
  ...Object.fromEntries('BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3])),
  CLF: 4,
  UYW: 4,
};

const CURRENCIES: ReadonlySet<string> = new Set([
  ...Intl.supportedValuesOf('currency'),
  ...Object.keys(DECIMALS),
]);

/** Returns the decimals of an ISO 4217 currency code, or undefined for an unknown code. */
export function decimalsOf(currency: string): number | undefined {
  return CURRENCIES.has(currency) ? (DECIMALS[currency] ?? 2) : undefined;
}

/** Returns an amount of a currency, which has to exist, from its minor units. */
export function moneyIn(currency: string, minor: bigint): Money {
  const decimals = decimalsOf(currency);
  if (decimals === undefined) throw new Error(`${currency} is not a currency of ISO 4217`);
  return { minor, decimals };
}

/** A decimal number in its only spelling: `significant` × 10^`exponent`, 0 without an exponent. */
type Spelled = {
  readonly isNegative: boolean;
  /** Digits, of which neither the first nor the last is 0; empty for 0. */
  readonly significant: string;
  readonly exponent: number;
};

/**
 * Reads a decimal number as JSON writes it (`12.5`, `1e2`), without calculating. Returns undefined for any
 * other text, for more than 40 digits before or after the point, and for an exponent of more than three
 * digits, which is out of every bound and would only cost memory.
 */
function spelled(text: string): Spelled | undefined {
  const parts = /^(-?)(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/.exec(text);
  if (!parts) return undefined;
  const [, sign, whole = '', fraction = '', power = '0'] = parts;
  const digits = whole + fraction;
  let first = 0;
  while (digits[first] === '0') first++;
  let end = digits.length;
  while (end > first && digits[end - 1] === '0') end--;
  if (first === end) return { isNegative: false, significant: '', exponent: 0 };
  return {
    isNegative: sign === '-',
    significant: digits.slice(first, end),
    exponent: Number(power) - fraction.length + digits.length - end,
  };
}

/** Whether two texts are the same decimal number. Text that is not a number is like no other. */
export function isSameDecimal(one: string, other: string): boolean {
  const [a, b] = [spelled(one), spelled(other)];
  return (
    a !== undefined &&
    a.isNegative === b?.isNegative &&
    a.significant === b.significant &&
    a.exponent === b.exponent
  );
}

/** A decimal number: `digits` × 10^-`scale`, without trailing zeros after the point. */
type Decimal = { readonly digits: bigint; readonly scale: number };

/** Reads a decimal number exactly. Returns undefined as `spelled` does. */
export function parseDecimal(text: string): Decimal | undefined {
  const number = spelled(text);
  if (!number) return undefined;
  const { isNegative, significant, exponent } = number;
  const digits = BigInt(significant || '0') * 10n ** BigInt(Math.max(0, exponent));
  return { digits: isNegative ? -digits : digits, scale: Math.max(0, -exponent) };
}

/** Reads a decimal number of at most 20 digits before and after the point: no sign, exponent or separator. */
export function parsePlainDecimal(text: string): Decimal | undefined {
  return /^\d{1,20}(\.\d{1,20})?$/.test(text) ? parseDecimal(text) : undefined;
}

/**
 * Returns a number in units of its last decimal, exactly. The shortest text of the double is what the sender
 * wrote.
 */
function scaled(value: number, decimals: number, max: bigint): bigint {
  const decimal = parseDecimal(String(value));
  if (!decimal || decimal.scale > decimals) throw new Refusal('13');
  const units = decimal.digits * 10n ** BigInt(decimals - decimal.scale);
  if (units > max || units < -max) throw new Refusal('13');
  return units;
}

function positive(units: bigint): bigint {
  if (units <= 0n) throw new Refusal('13');
  return units;
}

/**
 * Returns the minor units of an amount from JSON. The result is exact: nothing is rounded.
 * @param value a JSON number, in major units
 * @param decimals of the currency
 * @returns minor units, within the range in which JSON numbers are exact
 * @throws Refusal `13` for more decimals than the currency has, NaN, infinity, or an amount that JSON
 *   cannot represent exactly
 */
export const toMinor = (value: number, decimals: number) => scaled(value, decimals, MINOR_MAX);

/**
 * Returns the ten-thousandths of a major unit, which are used until the currency is known.
 * @throws Refusal `13` for amounts that no currency can have, or beyond the range of two decimals
 */
export const toUnits = (value: number) => scaled(value, DECIMALS_MAX, UNITS_MAX);

/** Like `toUnits`, but refuses (`13`) amounts that are not above 0. */
export const toPositiveUnits = (value: number) => positive(toUnits(value));

/** Like `toMinor`, but refuses (`13`) amounts that are not above 0. */
export const toPositiveMinor = (value: number, decimals: number) => positive(toMinor(value, decimals));

/**
 * Returns an amount as a JSON number in major units: 1250n with 2 decimals is 12.5. It is exact for all
 * amounts up to MINOR_MAX.
 */
export function toNumber({ minor, decimals }: Money): number {
  return Number(minor) / 10 ** decimals;
}

/** Returns an amount as text with all its decimals, for people: `12.50`. */
export function toText({ minor, decimals }: Money): string {
  const sign = minor < 0n ? '-' : '';
  const digits = String(minor < 0n ? -minor : minor).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  return decimals === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-decimals)}`;
}

/** Returns minor units of a currency, which has to exist, as text with all its decimals. */
export function textIn(currency: string, minor: bigint): string {
  return toText(moneyIn(currency, minor));
}

/** An amount with its currency, in major units: `EUR 12.50`. */
export type Sum = `${string} ${number}`;

/** Returns minor units with their currency, which has to exist, as the audit and approvals show them. */
export function toSum(currency: string, minor: bigint): Sum {
  return `${currency} ${textIn(currency, minor)}` as Sum;
}
