/** What a sheet says, in each language. */

/** The language of a sheet. */
export type Language = 'en' | 'de';

export type Words = {
  readonly code: string;
  readonly pin: string;
  readonly validUntil: string;
  readonly serialNumber: string;
  readonly needsActivation: string;
  readonly valueAtActivation: string;
  readonly merchant: string;
  readonly title: (reference: string) => string;
  readonly batch: (reference: string) => string;
  /** @param time in UTC, without seconds */
  readonly exported: (count: number, time: string) => string;
  readonly serials: (first: bigint | undefined, last: bigint | undefined) => string;
  readonly page: (page: number, pages: number) => string;
  /** A day in UTC. */
  readonly day: Intl.DateTimeFormat;
};

export const WORDS: Readonly<Record<Language, Words>> = {
  en: {
    code: 'CODE',
    pin: 'PIN',
    validUntil: 'VALID UNTIL',
    serialNumber: 'SERIAL NO.',
    needsActivation: 'NOT VALID BEFORE ACTIVATION: SCAN AT THE TILL',
    valueAtActivation: 'VALUE GIVEN AT ACTIVATION',
    merchant: 'Merchant',
    title: (reference) => `Vouchers ${reference}`,
    batch: (reference) => `Batch ${reference}`,
    exported: (count, time) => `${count} ${count === 1 ? 'voucher' : 'vouchers'}, exported ${time} UTC`,
    serials: (first, last) => `Serial no. ${first} to ${last}. Codes are money: keep under lock.`,
    page: (page, pages) => `Page ${page} of ${pages}`,
    day: new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' }),
  },
  de: {
    code: 'CODE',
    pin: 'PIN',
    validUntil: 'GÜLTIG BIS',
    serialNumber: 'SERIENNR.',
    needsActivation: 'ERST NACH DER AKTIVIERUNG GÜLTIG: AN DER KASSE SCANNEN',
    valueAtActivation: 'WERT WIRD BEI AKTIVIERUNG FESTGELEGT',
    merchant: 'Händler',
    title: (reference) => `Gutscheine ${reference}`,
    batch: (reference) => `Charge ${reference}`,
    exported: (count, time) => `${count} ${count === 1 ? 'Gutschein' : 'Gutscheine'}, exportiert ${time} UTC`,
    serials: (first, last) => `Seriennr. ${first} bis ${last}. Codes sind Geld: unter Verschluss halten.`,
    page: (page, pages) => `Seite ${page} von ${pages}`,
    day: new Intl.DateTimeFormat('de-DE', { dateStyle: 'medium', timeZone: 'UTC' }),
  },
};

/** An amount in major units, as decimal text, as the language writes it. It is not rounded. */
export function amountIn(language: Language, value: string): string {
  const [, fraction = ''] = value.split('.');
  const decimals = { minimumFractionDigits: fraction.length, maximumFractionDigits: fraction.length };
  return new Intl.NumberFormat(language, decimals).format(value as Intl.StringNumericLiteral);
}
