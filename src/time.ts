/**
 * Reads times, and formats them for answers and the log, since Date took a twentieth of a balance enquiry for
 * it.
 */

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
export const MINUTE_MS = 60_000;

const TWO = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
const THREE = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'));

/** The text of each day, by its number. Nearly all calls need the same few. */
const days = new Map<number, string>();
const CACHED_DAYS_MAX = 1_000;

/**
 * Returns the UTC day of a time, as `2026-01-31`.
 * @param ms since 1970
 * @throws RangeError for an invalid time
 */
export function isoDay(ms: number): string {
  const number = Math.floor(ms / DAY_MS);
  const known = days.get(number);
  if (known !== undefined) return known;
  const text = new Date(ms).toISOString();
  const day = text.slice(0, text.indexOf('T'));
  if (days.size >= CACHED_DAYS_MAX) days.clear();
  days.set(number, day);
  return day;
}

/**
 * Like `new Date(ms).toISOString()`.
 * @param ms since 1970, a whole number
 * @throws RangeError for an invalid time
 */
export function isoTime(ms: number): string {
  const day = isoDay(ms);
  const ofDay = ms - Math.floor(ms / DAY_MS) * DAY_MS;
  const hour = Math.floor(ofDay / HOUR_MS);
  const minute = Math.floor((ofDay % HOUR_MS) / MINUTE_MS);
  const second = Math.floor((ofDay % MINUTE_MS) / 1_000);
  return `${day}T${TWO[hour]}:${TWO[minute]}:${TWO[second]}.${THREE[ofDay % 1_000]}Z`;
}

/** The suffix of a time that PostgreSQL writes into JSON in UTC. Up to six digits of a second precede it. */
const UTC_IN_JSON = '+00:00';

/**
 * Turns a time from PostgreSQL's JSON into the form of `isoTime`, cut to milliseconds.
 * @throws RangeError for an invalid time
 */
export function isoFromJson(text: string): string {
  if (!text.endsWith(UTC_IN_JSON) || text[10] !== 'T') return new Date(text).toISOString();
  return `${text.slice(0, 19)}.${text.slice(20, -UTC_IN_JSON.length).slice(0, 3).padEnd(3, '0')}Z`;
}

/**
 * Whether a text is a day that exists, such as `2026-01-31`. Date would read the 31st of April as the 1st of
 * May, and PostgreSQL has no year 0.
 */
export function isDay(text: string): boolean {
  return (
    /^(?!0000)\d{4}-\d{2}-\d{2}$/.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.slice(0, 10) === text
  );
}

/** Returns the day that is a number of days after another. */
export function addDays(day: string, count: number): string {
  return isoDay(Date.parse(`${day}T00:00:00Z`) + count * DAY_MS);
}

const DATE = '(\\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])';
const TIME = '([01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d{1,9})?)?';
const OFFSET = '([Zz]|[+-](?:[01]\\d|2[0-3]):?[0-5]\\d)?';
const DATE_TIME = new RegExp(`^${DATE}[Tt ]${TIME}${OFFSET}$`);
const YEAR_MAX = 9_999;

/**
 * Reads an ISO 8601 date and time. Seconds may be omitted. Without an offset the time is UTC, as in every
 * answer of the service. A date alone is refused, since it is not a point in time.
 * @returns undefined for any other text, and for days that do not exist
 */
export function parseDateTime(text: string): Date | undefined {
  const parts = DATE_TIME.exec(text);
  if (!parts) return undefined;
  const [, year, month, day, , offset] = parts;
  // Date would turn 30 February into 2 March.
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return undefined;
  const instant = text
    .toUpperCase()
    .replace(' ', 'T')
    .replace(/([+-]\d{2})(\d{2})$/, '$1:$2');
  const date = new Date(offset ? instant : `${instant}Z`);
  return isInCalendar(date) ? date : undefined;
}

/**
 * Whether the year of a time in UTC, where an offset may have moved it, is from 1 to 9999. PostgreSQL has no
 * year 0, and every date-time of an answer has four digits. An invalid time has no year.
 */
export function isInCalendar(date: Date): boolean {
  const year = date.getUTCFullYear();
  return year >= 1 && year <= YEAR_MAX;
}
