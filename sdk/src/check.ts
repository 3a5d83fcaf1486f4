import type { StatusCode } from './codes.ts';
import { judgeAmount, MOST_DECIMALS } from './money.ts';
import type { VoucherInput } from './types.ts';

/** What is wrong with an argument: told like the service would tell it, before anything is sent. Never holds the value. */
export type Invalid = {
  readonly statusCode: StatusCode;
  readonly field: string;
  readonly rule: string;
  readonly message: string;
};

/** Thrown inside the client, and told as a ScripError with the call's reference. */
export class InvalidArgument extends Error {
  readonly invalid: Invalid;

  constructor(invalid: Invalid) {
    super(`${invalid.field} ${invalid.message}`);
    this.name = 'InvalidArgument';
    this.invalid = invalid;
  }
}

/** Thrown inside the client for what the variant lacks. */
export class Unsupported extends Error {
  override readonly name = 'Unsupported';
}

function refuse(statusCode: StatusCode, field: string, rule: string, message: string): never {
  throw new InvalidArgument({ statusCode, field, rule, message });
}

/** An argument that must be an object: callers without types may leave it out. */
export function checkObject(value: unknown): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) refuse('30', 'request', 'type', 'must be an object');
}

/** Fields that the other variant has: an amount or a date that is silently dropped would be another request. */
export function refuseFields(request: object, fields: readonly string[], variant: string): void {
  for (const field of fields) {
    if ((request as Readonly<Record<string, unknown>>)[field] !== undefined) {
      throw new Unsupported(`variant ${variant} has no field ${field} here`);
    }
  }
}

export function checkText(value: unknown, field: string): string {
  if (typeof value !== 'string') refuse('30', field, 'type', 'must be a string');
  if (value === '') refuse('30', field, 'minLength', 'must not be empty');
  return value;
}

/** @returns the amount as it came, exact */
export function checkAmount(
  value: unknown,
  field: string,
  { decimals = MOST_DECIMALS, least = 'above zero' }: { decimals?: number | undefined; least?: 'above zero' | 'zero' },
): number {
  const wrong = judgeAmount(value, decimals, least);
  if (wrong) throw new InvalidArgument({ field, ...wrong });
  return value as number;
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
  if (!isInOne && !/^\d{12}$/.test(code)) {
    refuse('30', 'code', 'pattern', 'must be 12 digits (with pin), or 16 digits (code and PIN, without pin)');
  }
  if (isInOne) {
    if (pin !== undefined && pin !== null) refuse('30', 'pin', 'null', 'must be left out with a code of 16 digits');
    return { code: code.slice(0, 12), pin: code.slice(12) };
  }
  if (pin === undefined || pin === null) refuse('30', 'pin', 'required', 'is required with a code of 12 digits');
  if (typeof pin !== 'string' || !/^\d{4}$/.test(pin)) refuse('30', 'pin', 'pattern', 'must be 4 digits, as a string');
  return { code, pin };
}

/** @returns the number of a serial number, which may come as text, as transactions tell it */
export function checkSerialNumber(value: unknown): number {
  const text = String(value);
  if ((typeof value !== 'number' && typeof value !== 'string') || !/^[1-9]\d{0,14}$/.test(text)) {
    refuse('30', 'serialNumber', 'pattern', 'must be a whole number of at most 15 digits');
  }
  return Number(text);
}

/** @returns the date-time as text, or null for the service's default */
export function checkExpiryDate(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string' && !(value instanceof Date)) {
    refuse('30', 'expiryDate', 'type', 'must be a Date, or an ISO 8601 date-time');
  }
  if (typeof value === 'string') return value;
  if (Number.isNaN(value.getTime())) refuse('17', 'expiryDate', 'date', 'must be a valid Date');
  return value.toISOString();
}

const TIMES = ['deadlineMs', 'attemptTimeoutMs', 'idleTimeoutMs'] as const;

/** The times of a single call: one that is no number would end the call before it has begun, or never. */
export function checkTimes(options: { readonly [Name in (typeof TIMES)[number]]?: unknown }): void {
  for (const name of TIMES) {
    const value = options[name];
    if (value !== undefined && !(typeof value === 'number' && value > 0)) {
      refuse('30', name, 'minimum', 'must be a number above zero');
    }
  }
}

const LONGEST_REFERENCE = 100;

/**
 * Checks a reference to look something up by. `.` and `..` are taken out of every address on its way, so that a request
 * about them would be one about something else.
 */
export function checkReference(value: unknown): string {
  if (typeof value !== 'string') refuse('30', 'reference', 'type', 'must be a string');
  const length = value.length > 2 * LONGEST_REFERENCE ? value.length : [...value].length;
  if (length < 1 || length > LONGEST_REFERENCE) refuse('18', 'reference', 'length', 'must have 1 to 100 characters');
  // Its own spelling is the only one that is the same after UTF-8, which broken surrogates are not.
  if (/\p{Cc}/u.test(value) || /\p{Surrogate}/u.test(value)) {
    refuse('18', 'reference', 'characters', 'must be well-formed and have no control characters');
  }
  if (value === '.' || value === '..') refuse('18', 'reference', 'characters', 'cannot be a single or a double dot');
  return value;
}

/** Checks a reference that something new is done under. */
export function checkNewReference(value: unknown): string {
  const reference = checkReference(value);
  if (/^(CANCEL|NEW)-/.test(reference)) refuse('18', 'reference', 'prefix', 'must not begin with CANCEL- or NEW-');
  return reference;
}
