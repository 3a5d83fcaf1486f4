import { DAY_MS } from '../time.ts';

/**
 * The days on which banks execute payments: no Saturday and no Sunday, and in euro none of the closing days
 * of TARGET, the system in which the banks of the euro settle.
 */

const FIXED_CLOSING_DAYS: readonly string[] = ['01-01', '05-01', '12-25', '12-26'];
/** Good Friday and Easter Monday, in days from Easter Sunday. */
const EASTER_CLOSING_DAYS: readonly number[] = [-2, 1];

/** Returns the first bank day from a day on, such as `2026-03-02`. */
export function bankDay(day: string, currency: string): string {
  let time = Date.parse(`${day}T00:00:00Z`);
  while (isClosed(new Date(time), currency)) time += DAY_MS;
  return textOf(time);
}

const textOf = (time: number) => new Date(time).toISOString().slice(0, 10);

function isClosed(date: Date, currency: string): boolean {
  if (date.getUTCDay() % 6 === 0) return true;
  if (currency !== 'EUR') return false;
  const day = textOf(date.getTime());
  const easter = easterOf(date.getUTCFullYear());
  return (
    FIXED_CLOSING_DAYS.includes(day.slice(5)) ||
    EASTER_CLOSING_DAYS.some((days) => textOf(easter + days * DAY_MS) === day)
  );
}

/** Returns the time of Easter Sunday, by the algorithm of Gauss for the years 1900 to 2099. */
function easterOf(year: number): number {
  const moon = (19 * (year % 19) + 24) % 30;
  const week = (2 * (year % 4) + 4 * (year % 7) + 6 * moon + 5) % 7;
  const days = 22 + moon + week;
  const isLate = (moon === 29 && week === 6) || (moon === 28 && week === 6 && year % 19 > 10);
  return Date.UTC(year, 2, isLate ? days - 7 : days);
}
