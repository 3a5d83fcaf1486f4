import { useLanguage } from '../i18n/index.tsx';

/** Numbers, money and times in the language of the page. */
export function useFormat() {
  const { language } = useLanguage();
  const locale = language === 'de' ? 'de-DE' : 'en-GB';
  const money = (amount: number, currency: string) => {
    const options = { style: 'currency', currency, currencyDisplay: 'code' } as const;
    try {
      return new Intl.NumberFormat(locale, options).format(amount);
    } catch {
      return `${currency} ${amount}`;
    }
  };
  const time = (text: string) =>
    new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(text));
  const day = (text: string) =>
    new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' }).format(
      new Date(`${text.slice(0, 10)}T00:00:00Z`),
    );
  const number = (value: number) => new Intl.NumberFormat(locale).format(value);
  return { money, time, day, number };
}

/** `blockedAt` → `Blocked at`: fields of the API as labels. */
export function labelOf(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[-_]/g, ' ')
    .toLowerCase();
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return text.replace(/\b(id|pin|url|api|csv|vat)\b/gi, (word) => word.toUpperCase());
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
export const isTime = (value: unknown): value is string => typeof value === 'string' && TIME.test(value);
