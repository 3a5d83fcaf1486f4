import { PERMISSIONS, type Permission } from '../context.ts';
import { decimalsOf, MINOR_MAX, parseDecimal } from '../money.ts';
import { isKeyId } from '../secrets.ts';
import { fail, quoted } from './output.ts';

/** The number of a merchant as the command line takes it. */
export function parseId(text: string, what = 'merchant'): number {
  const id = Number(text);
  if (!/^\d{1,10}$/.test(text) || id < 1 || id > 2_147_483_647)
    fail(`${quoted(text)} is no ${what} id: it is a whole number`);
  return id;
}

/** The id of an API key: what cannot be one (its secret, perhaps) is asked of nobody. */
export function parseKeyId(text: string): string {
  return isKeyId(text) ? text : fail(`${quoted(text)} is no key id: it begins with key_`);
}

/** A whole number within bounds. */
export function parseCount(text: string, option: string, least: number, most: number): number {
  const count = Number(text);
  if (!/^\d{1,10}$/.test(text) || count < least || count > most)
    fail(`${option} takes a whole number from ${least} to ${most}`);
  return count;
}

/** An amount above zero, in major units as decimal text, exact. */
export function parseAmount(text: string, option: string, currency: string): bigint {
  const decimals = parseCurrency(currency);
  const decimal = parseDecimal(text);
  if (!decimal) fail(`${option} takes an amount such as 100 or 99.50`);
  if (decimal.scale > decimals) fail(`${option}: ${currency} has ${decimals} decimals`);
  const minor = decimal.digits * 10n ** BigInt(decimals - decimal.scale);
  if (minor <= 0n) fail(`${option} takes an amount above zero`);
  if (minor > MINOR_MAX) fail(`${option} is too large`);
  return minor;
}

/** A number in major units for the core to judge, exactly as it was typed or not at all. */
export function parseValue(text: string, option: string): number {
  const typed = parseDecimal(text);
  const read = parseDecimal(String(Number(text)));
  if (!typed || typed.digits !== read?.digits || typed.scale !== read.scale)
    fail(`${option} takes an amount such as 100 or 99.50`);
  return Number(text);
}

/** The decimals of a currency code that was typed. */
export function parseCurrency(currency: string): number {
  return decimalsOf(currency) ?? fail(`${quoted(currency)} is no currency code of ISO 4217`);
}

/** Of a date-time with four digits for its year, as the service tells all of them. */
const LAST_YEAR = 9_999;

/** An expiry date: a day is meant to its end. */
export function parseExpiry(text: string): Date {
  return parseDate(text, '--expiry', '23:59:59.999');
}

/**
 * A day, or a date and time; without an offset a time is UTC, as everything the service says is.
 * @param timeOfDay what a day without a time means
 */
export function parseDate(text: string, option: string, timeOfDay = '00:00:00.000'): Date {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const dateTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?$/.test(text);
  const zoned = /(Z|[+-]\d{2}:\d{2})$/.test(text) && dateTime;
  const date = new Date(day ? `${text}T${timeOfDay}Z` : zoned ? text : `${text}Z`);
  // A day that does not exist would otherwise become one of the next month.
  const exists = new Date(`${text.slice(0, 10)}T00:00:00Z`).toJSON()?.slice(0, 10) === text.slice(0, 10);
  const hasYear = date.getUTCFullYear() >= 0 && date.getUTCFullYear() <= LAST_YEAR;
  if (!(day || dateTime) || !hasYear || !exists)
    fail(`${option} takes a day such as 2030-01-31, or 2030-01-31T12:00:00Z`);
  return date;
}

/** A transaction id as the service gives them. */
export function parseTransactionId(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) fail(`${quoted(text)} is no transaction id`);
  return text.toLowerCase();
}

/** One of the words that an option takes. */
export function oneOf<Choice extends string>(text: string, option: string, choices: readonly Choice[]): Choice {
  return choices.find((each) => each === text) ?? fail(`${option} takes ${choices.join(' or ')}`);
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time such as `90s`, `30m`, `24h` or `7d`, up to a year; in milliseconds. */
export function parseDuration(text: string, option: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,8})([smhd])$/.exec(text) ?? [];
  const durationMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (count === '' || durationMs > 366 * UNIT_MS.d) fail(`${option} takes a length of time such as 30m, 24h or 7d`);
  return durationMs;
}

/** One of the permissions that a merchant can have. */
export function parsePermission(text: string): Permission {
  const permission = PERMISSIONS.find((each) => each === text);
  return permission ?? fail(`${quoted(text)} is no permission: ${PERMISSIONS.join(', ')}`);
}

/** Collects an option that may be given several times. */
export const repeat = (value: string, values: string[] = []): string[] => [...values, value];
