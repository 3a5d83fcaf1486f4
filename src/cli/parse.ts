import { decimalsOf, parseDecimal } from '../money.ts';
import { fail } from './output.ts';

/** The number of a merchant as the command line takes it. */
export function parseId(text: string, what = 'merchant'): number {
  const id = Number(text);
  if (!/^\d{1,10}$/.test(text) || id < 1 || id > 2_147_483_647)
    fail(`"${text}" is no ${what} id: it is a whole number`);
  return id;
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
  if (minor > BigInt(Number.MAX_SAFE_INTEGER)) fail(`${option} is too large`);
  return minor;
}

/** The decimals of a currency code that was typed. */
export function parseCurrency(currency: string): number {
  return decimalsOf(currency) ?? fail(`"${currency}" is no currency code of ISO 4217`);
}
