import { dateFormat, type Language, numberFormat, writeNumber } from './number.ts';

declare const WRITTEN: unique symbol;

/**
 * Money as text. React does not take it: a `Figure` shows it, and says what it opens into. `${}` writes it in
 * a sentence.
 */
export type Written = { readonly [WRITTEN]: true; toString(): string };

const written = (text: string) => text as unknown as Written;

/** Numbers, money and times in a language. */
export function formatOf(language: Language) {
  const locale = language === 'de' ? 'de-DE' : 'en-GB';
  const write = (value: number, options?: Intl.NumberFormatOptions) => writeNumber(value, locale, options);
  const money = (amount: number, currency: string, signDisplay: 'auto' | 'exceptZero' = 'auto') => {
    try {
      return written(write(amount, { style: 'currency', currency, currencyDisplay: 'code', signDisplay }));
    } catch {
      return written(`${currency} ${amount}`);
    }
  };
  /** An amount without its currency. */
  const amount = (value: number, currency: string) => {
    const { minimumFractionDigits, maximumFractionDigits } = numberFormat(locale, {
      style: 'currency',
      currency,
    }).resolvedOptions();
    return written(write(value, { minimumFractionDigits, maximumFractionDigits }));
  };
  /** An amount with its sign, also a plus sign. */
  const moved = (amount: number, currency: string) => money(amount, currency, 'exceptZero');
  const dateOf = (text: string, options: Intl.DateTimeFormatOptions) =>
    dateFormat(locale, options).format(new Date(text));
  const time = (text: string) => dateOf(text, { dateStyle: 'medium', timeStyle: 'short' });
  /** A time as it is in a zone. */
  const timeIn = (text: string, timeZone: string) =>
    dateOf(text, { dateStyle: 'medium', timeStyle: 'short', timeZone });
  const exact = (text: string) => dateOf(text, { dateStyle: 'full', timeStyle: 'long' });
  /** A day stays on one line. */
  const day = (text: string) =>
    dateOf(`${text.slice(0, 10)}T00:00:00Z`, { dateStyle: 'medium', timeZone: 'UTC' }).replaceAll(
      ' ',
      '\u00a0',
    );
  /** A day without its year, for an axis. */
  const dayShort = (text: string) =>
    dateOf(`${text.slice(0, 10)}T00:00:00Z`, { day: 'numeric', month: 'short', timeZone: 'UTC' });
  const month = (text: string) =>
    dateOf(`${text.slice(0, 7)}-01T00:00:00Z`, { month: 'short', year: 'numeric', timeZone: 'UTC' });
  const number = (value: number) => write(value);
  /** Decimal text with as many decimals as it has. */
  const exactly = (text: string) => {
    const digits = text.split('.')[1]?.length ?? 0;
    return write(Number(text), { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  const percent = (text: string) => exactly(text) + (language === 'de' ? '\u00a0%' : '%');
  const short = (value: number) =>
    write(value, { notation: 'compact', maximumFractionDigits: 1, useGrouping: 'always' });
  return {
    money,
    amount,
    moved,
    time,
    timeIn,
    exact,
    day,
    dayShort,
    month,
    number,
    exactly,
    percent,
    short,
    locale,
  };
}

/** Returns a time in a zone as `2026-01-31 23:59:59`, or in UTC if the browser does not know the zone. */
function inZone(time: Date, zone: string): string {
  const style = { dateStyle: 'short', timeStyle: 'medium' } as const;
  try {
    return dateFormat('sv-SE', { ...style, timeZone: zone }).format(time);
  } catch {
    return dateFormat('sv-SE', { ...style, timeZone: 'UTC' }).format(time);
  }
}

/** Returns the day that it is now in a zone. */
export const todayIn = (zone: string) => inZone(new Date(), zone).slice(0, 10);

/** Returns the day whose last millisecond in a zone this time is, or undefined. */
export function endedDay(text: string, zone: string): string | undefined {
  if (!text.endsWith(':59.999Z')) return undefined;
  const [day, time] = inZone(new Date(text), zone).split(' ');
  return time === '23:59:59' ? day : undefined;
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const MONTH = /^\d{4}-\d{2}$/;
export const isMonth = (value: unknown): value is string => typeof value === 'string' && MONTH.test(value);
export const isTime = (value: unknown): value is string => typeof value === 'string' && TIME.test(value);
export const isDay = (value: unknown): value is string => typeof value === 'string' && DAY.test(value);

/** Whether a time is over. */
export const isPast = (time: unknown): boolean => isTime(time) && new Date(time) <= new Date();
