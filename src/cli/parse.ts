import { isOrigin, ORIGIN } from '../config.ts';
import { isSameDecimal, parsePlainDecimal } from '../money.ts';
import { isDay, parseDateTime } from '../time.ts';
import { INVISIBLE, wrongUsage } from './output.ts';

/** Parses arguments and options. A wrong value ends the command with the reason (exit status 2). */

export function parseOrigin(text: string): string {
  if (isOrigin(text)) return text.replace(/\/$/, '');
  return wrongUsage(`--url takes ${ORIGIN}`);
}

/** Parses a whole number within bounds. */
export function parseCount(text: string, option: string, min: number, max: number): number {
  const count = Number(text);
  if (!/^\d{1,10}$/.test(text) || count < min || count > max)
    wrongUsage(`${option} takes a whole number from ${min} to ${max}`);
  return count;
}

/** Returns the parser of an option that takes a whole number within bounds. */
export const countOf = (option: string, min: number, max: number) => (text: string) =>
  parseCount(text, option, min, max);

/** Parses an amount in major units, which the core checks. The result is exactly the typed number. */
export function parseValue(text: string, option: string): number {
  const value = Number(text);
  if (!parsePlainDecimal(text) || !isSameDecimal(text, String(value)))
    wrongUsage(`${option} takes an amount in plain digits, such as 100 or 99.50`);
  return value;
}

/** Parses a day of the books. The result is text. */
export function parseDay(text: string, option: string): string {
  return isDay(text) ? text : wrongUsage(`${option} takes a day such as 2030-01-31`);
}

/** Parses a date and time, which is in UTC unless it has an offset. A day means its first moment in UTC. */
export function parseUtc(text: string, option: string): Date {
  return (
    parseDateTime(isDay(text) ? `${text}T00:00` : text) ??
    wrongUsage(`${option} takes a day such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z`)
  );
}

/** Parses one of the words that an option accepts. */
export function oneOf<Choice extends string>(
  text: string,
  option: string,
  choices: readonly Choice[],
): Choice {
  return choices.find((each) => each === text) ?? wrongUsage(`${option} takes ${choices.join(' or ')}`);
}

/** Parses a line of text that is shown on terminals and pages. */
export function parseText(text: string, option: string, max: number): string {
  const line = text.trim();
  if (line.search(INVISIBLE) >= 0)
    wrongUsage(`${option} takes one line without control, direction or zero-width characters`);
  if (line === '' || line.length > max) wrongUsage(`${option} takes 1 to ${max} characters`);
  return line;
}

/** Collects an option that may be given several times. */
export const repeat = (value: string, values: string[] = []): string[] => [...values, value];
