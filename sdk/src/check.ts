import type { StatusCode } from './codes.ts';
import type { VoucherInput } from './types.ts';

/**
 * Checks of arguments: a request that the service would refuse is not sent. No error contains a value.
 */

/** Becomes a ScripError with the reference of the call. */
export class InvalidArgument extends Error {
  readonly statusCode: StatusCode;
  readonly field: string;
  readonly rule: string;
  readonly problem: string;

  constructor(statusCode: StatusCode, field: string, rule: string, problem: string) {
    super(`${field} ${problem}`);
    this.statusCode = statusCode;
    this.field = field;
    this.rule = rule;
    this.problem = problem;
  }
}

/** A call that the variant does not support. Becomes a ScripError as well. */
export class Unsupported extends Error {}

export function refuse(statusCode: StatusCode, field: string, rule: string, problem: string): never {
  throw new InvalidArgument(statusCode, field, rule, problem);
}

/** Callers without types may leave the argument out. */
export function checkObject(value: unknown): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) refuse('30', 'request', 'type', 'must be an object');
}

/** Refuses fields of the other variant: a request without them would be another request. */
export function refuseFields(request: object, fields: readonly string[], variant: string): void {
  for (const field of fields) {
    if ((request as Readonly<Record<string, unknown>>)[field] !== undefined)
      throw new Unsupported(`variant ${variant} has no field ${field} here`);
  }
}

export function checkText(value: unknown, field: string): string {
  if (typeof value !== 'string') refuse('30', field, 'type', 'must be a string');
  if (value === '') refuse('30', field, 'minLength', 'must not be empty');
  return value;
}

/** Currencies whose minor unit is not a hundredth (ISO 4217), by their number of decimals. */
const DECIMALS: readonly (readonly [number, string])[] = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
];
/** No currency has more. */
const DECIMALS_MAX = 4;

/** The number of decimals of an ISO 4217 currency. */
export function currencyDecimals(currency: string): number {
  return DECIMALS.find(([, codes]) => codes.split(' ').includes(currency))?.[0] ?? 2;
}

/**
 * Checks that an amount can be sent exactly. Nothing is rounded: the remainder of a calculation (0.1 +
 * 0.2) is refused.
 * @param least `zero` where an amount may be 0
 */
export function checkAmount(
  value: unknown,
  field: string,
  {
    decimals = DECIMALS_MAX,
    least = 'above zero',
  }: { decimals?: number | undefined; least?: 'above zero' | 'zero' },
): number {
  if (typeof value !== 'number') refuse('30', field, 'type', 'must be a number');
  const wrong = (problem: string) => refuse('13', field, 'amount', problem);
  if (!Number.isFinite(value)) wrong('must be a finite number');
  // Minus zero is what rounding leaves of a negative amount; as the amount of an update it would reverse it.
  if (value < 0 || Object.is(value, -0)) wrong('must not be negative');
  if (value === 0 && least === 'above zero') wrong('must be above zero');
  const [, whole = '', fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
  // Numbers with an exponent are above the safe range, or far below the smallest unit.
  if (whole === '') wrong(value < 1 ? `must have at most ${decimals} decimals` : 'is too large to be exact');
  if (fraction.length > decimals) wrong(`must have at most ${decimals} decimals; amounts are never rounded`);
  if (BigInt(whole + fraction) > BigInt(Number.MAX_SAFE_INTEGER)) wrong('is too large to be exact');
  return value;
}

export function checkQuantity(value: unknown): number {
  if (typeof value !== 'number') refuse('30', 'quantity', 'type', 'must be a number');
  if (!Number.isSafeInteger(value) || value < 1)
    refuse('16', 'quantity', 'integer', 'must be a whole number above zero');
  return value;
}

/** @returns code and PIN apart, whichever way they were given */
export function checkVoucher({ code, pin }: VoucherInput): { readonly code: string; readonly pin: string } {
  if (typeof code !== 'string') refuse('30', 'code', 'type', 'must be a string');
  const isInOne = /^\d{16}$/.test(code);
  if (!isInOne && !/^\d{12}$/.test(code))
    refuse('30', 'code', 'pattern', 'must be 12 digits (with pin), or 16 digits (code and PIN, without pin)');
  if (isInOne) {
    if (pin !== undefined && pin !== null)
      refuse('30', 'pin', 'null', 'must be left out with a code of 16 digits');
    return { code: code.slice(0, 12), pin: code.slice(12) };
  }
  if (pin === undefined || pin === null)
    refuse('30', 'pin', 'required', 'is required with a code of 12 digits');
  if (typeof pin !== 'string' || !/^\d{4}$/.test(pin))
    refuse('30', 'pin', 'pattern', 'must be 4 digits, as a string');
  return { code, pin };
}

/** @returns the number of a serial number, which may be text, as in transactions */
export function checkSerialNumber(value: unknown): number {
  const text = String(value);
  if ((typeof value !== 'number' && typeof value !== 'string') || !/^[1-9]\d{0,14}$/.test(text))
    refuse('30', 'serialNumber', 'pattern', 'must be a whole number of at most 15 digits');
  return Number(text);
}

/** @returns the date-time as text, or null for the service's default */
export function checkExpiryDate(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value;
  if (!(value instanceof Date))
    refuse('30', 'expiryDate', 'type', 'must be a Date, or an ISO 8601 date-time');
  if (Number.isNaN(value.getTime())) refuse('17', 'expiryDate', 'date', 'must be a valid Date');
  return value.toISOString();
}

const TIMES = ['deadlineMs', 'attemptTimeoutMs', 'idleTimeoutMs'] as const;

/** Checks the times of a call: with NaN it would end at once, or never. */
export function checkTimes(options: { readonly [Name in (typeof TIMES)[number]]?: unknown }): void {
  for (const name of TIMES) {
    const value = options[name];
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      refuse('30', name, 'minimum', 'must be a number above zero');
  }
}

const REFERENCE_MAX = 100;

/** Checks a reference to look something up by. */
export function checkReference(value: unknown): string {
  if (typeof value !== 'string') refuse('30', 'reference', 'type', 'must be a string');
  const length = value.length > 2 * REFERENCE_MAX ? value.length : [...value].length;
  if (length < 1 || length > REFERENCE_MAX)
    refuse('18', 'reference', 'length', 'must have 1 to 100 characters');
  // UTF-8 changes unpaired surrogates.
  if (/\p{Cc}/u.test(value) || /\p{Surrogate}/u.test(value))
    refuse('18', 'reference', 'characters', 'must be well-formed and have no control characters');
  // URLs lose such a segment on their way, so the request would be about something else.
  if (value === '.' || value === '..')
    refuse('18', 'reference', 'characters', 'cannot be a single or a double dot');
  return value;
}

/** Checks a reference for something new. */
export function checkNewReference(value: unknown): string {
  const reference = checkReference(value);
  if (/^(CANCEL|NEW)-/.test(reference))
    refuse('18', 'reference', 'prefix', 'must not begin with CANCEL- or NEW-');
  return reference;
}
