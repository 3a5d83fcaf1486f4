import type { Field } from '../described.ts';
import type { Catalogue } from '../i18n/en.ts';

/** From this many fields on, a form has sections. */
export const LONG_FORM = 9;

type Title = keyof Catalogue['sections'];
type Declared = Readonly<Partial<Record<Title, readonly string[]>>>;

const PRODUCT: Declared = {
  identity: ['code', 'name', 'currency', 'merchantId', 'gtin', 'design'],
  value: ['minValue', 'maxValue', 'outstandingMax', 'cashOutBelow', 'maxQuantity'],
  validity: ['activation', 'validityDays', 'validity', 'expiryPolicy', 'scope'],
};

/** The sections of long forms, with their fields in the order in which people think of them. */
export const SECTIONS: Readonly<Record<string, Declared>> = {
  'product.create': PRODUCT,
  'product.set': PRODUCT,
  'settlement.terms': {
    identity: ['merchantId', 'product', 'from'],
    rates: ['commission', 'vat'],
    payout: ['period', 'delayDays', 'minPayout', 'payee', 'iban'],
  },
  'settlement.file': {
    settlements: ['settlements', 'due', 'again'],
    file: ['format', 'accounts'],
    payer: ['payerName', 'payerIban', 'payerBic'],
  },
  'bank.mapping': {
    file: ['name', 'delimiter', 'encoding', 'decimal', 'dateFormat'],
    columns: ['date', 'amount', 'texts', 'currency', 'accountNumber', 'entryReference'],
  },
};

export type Section = { readonly title: Title | undefined; readonly fields: readonly Field[] };

/** The fields of a form, a long one in sections. What no section names comes last, as the reason does. */
export function sectionsOf(operation: string, fields: readonly Field[]): readonly Section[] {
  const declared = Object.entries(SECTIONS[operation] ?? {}) as [Title, readonly string[]][];
  const named = new Set(declared.flatMap(([, names]) => names));
  const found = declared.map(([title, names]) => ({
    title,
    fields: names.flatMap((name) => fields.find((field) => field.name === name) ?? []),
  }));
  const rest = { title: undefined, fields: fields.filter(({ name }) => !named.has(name)) };
  return [...found, rest].filter((section) => section.fields.length > 0);
}
