import { type Line, wrongUsage } from './command.ts';

/** Values of options, as the client takes them. */

/**
 * An amount, exact: a text with more digits than a number keeps is refused, not rounded.
 * @throws UsageError
 */
export function amountOf(line: Line, name: string): number | undefined {
  const text = line.text(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,16}(\.\d{1,16})?$/.test(text)) wrongUsage(`--${name} must be an amount such as 20 or 12.50`);
  const value = Number(text);
  const [whole = '', fraction = ''] = text.split('.');
  const trimmed = fraction.replace(/0+$/, '');
  const plain = `${whole.replace(/^0+(?=\d)/, '')}${trimmed === '' ? '' : `.${trimmed}`}`;
  if (String(value) !== plain) wrongUsage(`--${name} has more digits than can be sent exactly`);
  return value;
}

/** A whole number above zero. */
export function wholeOf(line: Line, name: string): number | undefined {
  const text = line.text(name);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,14}$/.test(text)) wrongUsage(`--${name} must be a whole number above zero`);
  return Number(text);
}

/** A point in time; of a bare day its end, in UTC. */
export function timeOf(line: Line, name: string): string | undefined {
  const text = line.text(name);
  if (text === undefined) return undefined;
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const full = isDay ? `${text}T23:59:59.999Z` : text;
  const time = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(full) ? new Date(full) : new Date(Number.NaN);
  // JavaScript reads the 31st of April as the 1st of May.
  const isReal = !Number.isNaN(time.getTime()) && (!isDay || time.toISOString() === full);
  if (!isReal) wrongUsage(`--${name} must be a day (2030-12-31) or a time with its zone (2030-12-31T12:00:00Z)`);
  return time.toISOString();
}
