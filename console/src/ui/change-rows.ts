import type { Shape } from '../described.ts';
import type { Labels } from '../i18n/en.labels.ts';
import type { Catalogue } from '../i18n/en.ts';
import { formatOf, isDay, isTime } from './format-of.ts';
import type { Language } from './number.ts';
import { wordsOf } from './words-of.ts';

/** What changes are written with: the texts of a language, the shapes of fields, and the names of things. */
export type Writing = {
  readonly texts: Catalogue;
  readonly labels: Labels;
  readonly language: Language;
  shapeOf(field: string): Shape;
  /** The name of a merchant or a product by its id or code, and the address of a user. */
  nameOf(kind: 'merchant' | 'product' | 'user', id: string): string | undefined;
};

/** A field that differs: its label, the old value, if there was one, and the new one. */
export type ChangeRow = {
  readonly name: string;
  readonly label: string;
  readonly old: string | undefined;
  readonly now: string;
};

type Thing = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Thing =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Thing) : {};

/**
 * Whether a statement says a field under its own name, an amount with its currency. The same number under
 * another name is another fact, and two merchants can have one name.
 */
export function isSaid(statement: Thing, field: string, value: unknown): boolean {
  if (field === 'currency') return Object.values(statement).some((each) => `${each}`.startsWith(`${value} `));
  const said = statement[field];
  return said === value || (typeof value === 'number' && Number(`${said}`.split(' ')[1]) === value);
}

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The ids of bookings say nothing about a change, and those of a proposal do not exist yet. */
export const withoutIds = (value: unknown): Thing =>
  Object.fromEntries(Object.entries(fieldsOf(value)).filter(([, each]) => !UUID.test(String(each))));

/** A field that is empty and did not exist before has not changed. */
const isNothing = (...values: readonly unknown[]) =>
  values.every(
    (value) => value === undefined || value === null || (Array.isArray(value) && value.length === 0),
  );

const PERCENT_PPM = 10_000;
const MONEY_TEXT = /^([A-Z]{3}) (-?\d+(?:\.\d+)?)$/;

/**
 * Returns what writes the value of a field: an amount with its currency, parts per million as percent, an id
 * by its name.
 */
export function valuesIn({ texts, labels, language, shapeOf, nameOf }: Writing) {
  const words = wordsOf(labels);
  const format = formatOf(language);
  const { yes, no } = texts.list;
  const written = (name: string, value: unknown, currency?: unknown): string => {
    if (value === null || value === undefined || value === '') return '–';
    if (name.endsWith('Ppm')) return format.percent(String(Number(value) / PERCENT_PPM));
    const { isMoney, isKnown, format: what, words: list } = shapeOf(name);
    if (isMoney && !Number.isNaN(Number(value)))
      return typeof currency === 'string'
        ? `${format.money(Number(value), currency)}`
        : format.exactly(String(value));
    if (what === 'merchant' || what === 'product') return nameOf(what, String(value)) ?? String(value);
    if (isTime(value)) return format.time(value);
    if (isDay(value)) return format.day(value);
    if (typeof value === 'boolean') return value ? yes : no;
    if (typeof value === 'number') return format.number(value);
    const [, code, amount] = MONEY_TEXT.exec(String(value)) ?? [];
    if (code && amount) return `${format.money(Number(amount), code)}`;
    if (Array.isArray(value)) return value.map((each) => written(name, each, currency)).join(', ') || '–';
    if (typeof value === 'object')
      return Object.entries(withoutIds(value))
        .map(([part, each]) => `${words.label(part)}: ${written(part, each, currency)}`)
        .join(', ');
    // A text of a person is no word of the API.
    return isKnown && list.length === 0 ? String(value) : words.word(String(value), name);
  };
  return written;
}

/**
 * Returns the fields that differ, as texts.
 * @param currency of amounts, if neither side names it
 */
export function rowsOf(
  writing: Writing,
  before: unknown,
  after: unknown,
  currency?: unknown,
): readonly ChangeRow[] {
  const { label } = wordsOf(writing.labels);
  const written = valuesIn(writing);
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const of = now['currency'] ?? old['currency'] ?? currency;
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(
    (name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]) && !isNothing(now[name], old[name]),
  );
  return names.map((name) => ({
    name,
    label: label(name.replace(/Ppm$/, '')),
    old: name in old ? written(name, old[name], of) : undefined,
    now: written(name, now[name], of),
  }));
}

/**
 * Returns the kind of the subject of a change and its name, or else its id: `merchant 5` → Merchant, Kyoto Tea
 * House.
 * @param within a change of it, which may contain a name: the number of a settlement
 */
export function subjectOf({ labels, nameOf }: Writing, of: string, within?: unknown) {
  const [, kind = '', id = ''] = /^(bank account|\S+) (.+)$/.exec(of) ?? [];
  if (id === '') return { noun: '', name: undefined, id: of };
  const { number, email } = fieldsOf(within);
  const given = { settlement: number, user: nameOf('user', id) ?? email, 'bank account': id }[kind];
  const known = kind === 'merchant' || kind === 'product' ? nameOf(kind, id) : given;
  return { noun: wordsOf(labels).noun(kind), name: typeof known === 'string' ? known : undefined, id };
}
