import type { Language } from '@scrip/print';
import { STEPS } from './show.ts';

/** What the statement of a settlement says, in each language. */

type Words = {
  readonly title: (number: string) => string;
  readonly merchant: string;
  readonly period: string;
  readonly days: (first: string, last: string, zone: string) => string;
  readonly currency: string;
  readonly dueOn: string;
  readonly payee: string;
  readonly account: (payee: string, last4: string) => string;
  readonly vatNumber: (number: string) => string;
  readonly columns: {
    readonly product: (currency: string) => string;
    readonly REDEEMED: string;
    readonly REVERSED: string;
    readonly EARLIER_REVERSAL: string;
    readonly COMMISSION: string;
    readonly COMMISSION_VAT: string;
    readonly net: string;
  };
  readonly steps: Readonly<Record<keyof typeof STEPS, string>>;
  /** The other movements on the account. */
  readonly kinds: Readonly<Record<string, string>>;
  readonly rate: (commission: string, base: string, fee: string, vat: string, feeVat: string) => string;
  readonly notes: readonly string[];
  readonly content: (hash: string) => string;
  readonly closing: (day: string, hash: string) => string;
  readonly root: (hash: string) => string;
};

export const WORDS: Readonly<Record<Language, Words>> = {
  en: {
    title: (number) => `Settlement ${number}`,
    merchant: 'Merchant',
    period: 'Period',
    days: (first, last, zone) => `${first} to ${last}, both included, ${zone}`,
    currency: 'Currency',
    dueOn: 'Due on',
    payee: 'Paid to',
    account: (payee, last4) => `${payee}, account that ends with ${last4}`,
    vatNumber: (number) => `VAT no. ${number}`,
    columns: {
      product: (currency) => `Lines, product, in ${currency}`,
      REDEEMED: 'Redemptions',
      REVERSED: 'Reversals',
      EARLIER_REVERSAL: 'From earlier periods',
      COMMISSION: 'Commission',
      COMMISSION_VAT: 'VAT',
      net: 'Net',
    },
    steps: STEPS,
    kinds: {
      CASH_OUT: 'Cash-out',
      OPENING: 'Opening balance',
    },
    rate: (commission, base, fee, vat, feeVat) =>
      `Commission of ${commission} % on ${base}: ${fee}. VAT of ${vat} % on it: ${feeVat}.`,
    notes: [
      'This statement is not an invoice for the commission.',
      'Every amount is a sum of booked movements. Commission is rounded once for each product and day, half away from zero.',
    ],
    content: (hash) => `Content (SHA-256 of the CSV): ${hash}`,
    closing: (day, hash) => `Closing of ${day}: ${hash}`,
    root: (hash) => `Root of its rows: ${hash}`,
  },
  de: {
    title: (number) => `Abrechnung ${number}`,
    merchant: 'Händler',
    period: 'Zeitraum',
    days: (first, last, zone) => `${first} bis ${last}, jeweils einschließlich, ${zone}`,
    currency: 'Währung',
    dueOn: 'Fällig am',
    payee: 'Gezahlt an',
    account: (payee, last4) => `${payee}, Konto mit den letzten Zeichen ${last4}`,
    vatNumber: (number) => `USt-IdNr. ${number}`,
    columns: {
      product: (currency) => `Zeilen, Produkt, in ${currency}`,
      REDEEMED: 'Einlösungen',
      REVERSED: 'Stornos',
      EARLIER_REVERSAL: 'Aus Vorzeiträumen',
      COMMISSION: 'Provision',
      COMMISSION_VAT: 'USt.',
      net: 'Netto',
    },
    steps: {
      CARRIED: 'Übertrag',
      REDEEMED: 'Einlösungen',
      REVERSED: 'Stornos',
      EARLIER_REVERSAL: 'Stornos früherer Zeiträume',
      COMMISSION: 'Provision',
      COMMISSION_VAT: 'Umsatzsteuer auf die Provision',
      OTHER: 'Andere Bewegungen',
      PAID_EARLIER: 'Mit früheren Abrechnungen ausgezahlt',
      CLOSING: 'Saldo am Ende',
      OUTSTANDING: 'Noch mit früheren Abrechnungen auszuzahlen',
      CARRIED_ON: 'Übertrag auf die nächste Abrechnung',
      PAYABLE: 'Zahlbar',
    },
    kinds: {
      CASH_OUT: 'Barauszahlung',
      OPENING: 'Eröffnungssaldo',
    },
    rate: (commission, base, fee, vat, feeVat) =>
      `Provision von ${commission} % auf ${base}: ${fee}. Umsatzsteuer von ${vat} % darauf: ${feeVat}.`,
    notes: [
      'Diese Abrechnung ist keine Rechnung über die Provision.',
      'Jeder Betrag ist eine Summe gebuchter Bewegungen. Die Provision wird je Produkt und Tag einmal gerundet, kaufmännisch.',
    ],
    content: (hash) => `Inhalt (SHA-256 der CSV-Datei): ${hash}`,
    closing: (day, hash) => `Abschluss vom ${day}: ${hash}`,
    root: (hash) => `Wurzel der Buchungen: ${hash}`,
  },
};
