import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { COUNTED, type Figure, REQUESTED } from './figure.ts';
import { decimalsOf, parseDecimal, toPositiveMinor } from './money.ts';
import { readNetwork } from './network.ts';
import { invalid } from './problem.ts';
import { isDay } from './time.ts';

/** Schemas that every door uses. */

/**
 * A schema that also accepts null. It is written as a list of types, the form that is fastest to validate, to
 * serialize and to document.
 */
export function Nullable<Schema extends TSchema>(schema: Schema, options: object = {}) {
  const { type, enum: words } = schema as { type?: string; enum?: readonly string[] };
  return Type.Unsafe<Static<Schema> | null>({
    ...schema,
    type: [type, 'null'],
    ...(words && { enum: [...words, null] }),
    ...options,
  });
}

/** A string from a closed list. */
export function Word<const Words extends readonly string[]>(words: Words, options: object = {}) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: words, ...options });
}

/** A key of a table, whose rows have the labels that people read. */
export function KeyOf<const Rows extends Readonly<Record<string, { readonly label: string }>>>(rows: Rows) {
  const labels = Object.fromEntries(Object.entries(rows).map(([key, { label }]) => [key, label]));
  return Word(Object.keys(rows) as (keyof Rows & string)[], { 'x-labels': labels });
}

/** A field that is an argument of the command, not an option. */
export function Positional<Schema extends TSchema>(schema: Schema): Schema {
  return { ...schema, positional: true };
}

/** A field with a label for people that its name does not say: `openapi.ts` and the console show it. */
export function Titled<Schema extends TSchema>(title: string, schema: Schema): Schema {
  return { ...schema, title };
}

/** A part of a long form, by the names of their titles in the console. */
type Section =
  | ('identity' | 'file' | 'columns' | 'value' | 'validity' | 'cards')
  | ('rates' | 'payout' | 'payer' | 'settlements');

/**
 * Fields that stand in one section of a form. The sections, and the fields of each, have the order of the
 * input.
 * @param isFolded whether the section is opened on demand while it has no values
 */
export function inSection<Fields extends TProperties>(
  section: Section,
  fields: Fields,
  { isFolded = false } = {},
): Fields {
  const placed = Object.entries<TSchema>(fields).map(([field, schema]) => {
    const own = { ...schema, 'x-section': section, ...(isFolded && { 'x-folded': true }) };
    return [field, Type.IsOptional(schema) ? Type.Optional(own) : own];
  });
  return Object.fromEntries(placed);
}

/** Optional fields with their defaults, which help and forms show. */
export function withDefaults<Fields extends TProperties>(
  fields: Fields,
  defaults: { readonly [Field in keyof Fields]?: unknown },
): Fields {
  const added = Object.entries(defaults).map(([field, value]) => [
    field,
    Type.Optional({ ...(fields[field] as TSchema), default: value }),
  ]);
  return { ...fields, ...Object.fromEntries(added) };
}

const ID_MAX = 2_147_483_647;

/** An id in the path or in a field. */
export function Id(what: string) {
  return Type.String({
    pattern: '^[1-9][0-9]{0,9}$',
    description: `The id of the ${what}.`,
    examples: ['1'],
  });
}

/** An id in an answer: a number inside, as the database has it, and rendered as text (src/operation.ts). */
export const Numbered = (id: TSchema) => Type.Unsafe<number>(id);

/** `x-format` says what a value is: a page shows it and asks for it accordingly. */
export const MerchantId = { ...Id('merchant'), 'x-format': 'merchant' };

export const SerialNumber = Type.String({
  pattern: '^[1-9][0-9]{0,14}$',
  'x-format': 'voucher',
  description: 'The serial number of the voucher.',
  examples: ['10000000064'],
});

/** A number of GS1 for a product. */
export const Gtin = Type.String({
  pattern: '^([0-9]{8}|[0-9]{12,14})$',
  format: 'gtin',
  description: 'A GTIN: 8, 12, 13 or 14 digits, the last of which is the check digit.',
  examples: ['9506000134352'],
});

/** A list of vouchers, which a command reads from a file. */
export function SerialNumbers(maxItems: number, description: string) {
  return Type.Array(SerialNumber, {
    minItems: 1,
    maxItems,
    uniqueItems: true,
    description,
    option: 'serials',
    file: 'lines',
  });
}

export const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

/** The code on a card, and the PIN beside it (spec). */
export const Code = Type.String({
  pattern: '^[0-9]{12}$',
  description: 'The code without the PIN: 12 digits.',
  examples: ['482913057641'],
});
export const Pin = Type.String({
  pattern: '^[0-9]{4}$',
  description: 'The PIN: 4 digits.',
  examples: ['0731'],
});

export const TransactionId = Type.String({
  pattern: `^${UUID}$`,
  description: 'A transaction id.',
  examples: ['0198c2f0-4a1b-7c3d-8e5f-0123456789ab'],
});

/**
 * Excludes invisible characters and those that change the direction of text: control, format and separator
 * characters.
 */
export const VISIBLE = '^(?:[^\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}])+$';

/** A line of text for people. */
export function Line(maxLength: number, description: string, example: string) {
  return Type.String({ minLength: 1, maxLength, pattern: VISIBLE, description, examples: [example] });
}

/** A file in base64, which a command reads and encodes itself. @param maxLength of the text */
export const Base64 = (maxLength: number, description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: '^[A-Za-z0-9+/]+={0,2}$',
    contentEncoding: 'base64',
    description,
    examples: [example],
    file: 'base64',
  });

/** RFC 5321 permits no longer one. */
export const Email = Line(254, 'An email address.', 'ada@example.com');

/** The networks from which a key or a token may be used. */
export const Networks = Type.Array(Line(50, 'A network in CIDR.', '10.0.0.0/8'), {
  maxItems: 50,
  description: 'The networks from which it may be used; left out: any.',
});

/** Returns networks as they are kept. @throws Problem that names the field if one of the texts is none */
export function toNetworks(texts: readonly string[]): string[] {
  return texts.map((text) => {
    const network = readNetwork(text);
    if (network === undefined) throw invalid('networks', 'network', 'must be networks such as 10.0.0.0/8');
    return network;
  });
}

export const Time = Type.Unsafe<Date>({
  type: 'string',
  format: 'date-time',
  description: 'ISO 8601, in UTC.',
});
/** A time in the past, to see what the journal had booked by then. */
export const At = Type.Optional(
  Type.String({
    title: 'Time',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,3})?)?(Z|[+-]\\d{2}:\\d{2})$',
    maxLength: 29,
    description: 'As it was at this time, by what was booked before it; left out: now.',
    examples: ['2026-03-02T14:03:00Z'],
  }),
);

/** Returns a past time that was given. @throws Problem for none, or one in the future */
export function pastTime(text: string | undefined, now: Date): Date | undefined {
  if (text === undefined) return undefined;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw invalid('at', 'time', 'is not a time');
  if (at > now) throw invalid('at', 'maximum', 'is in the future');
  return at;
}

export const NullableTime = Type.Unsafe<Date | null>({ ...Time, type: ['string', 'null'] });
export const Text = Type.String();
export const NullableText = Nullable(Text);
/** A number of things in an answer. */
export const Count = Opening(COUNTED, Type.Integer({ minimum: 0 }));

/** A secret. It is returned once and not stored. */
export const Secret = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  secret: true,
  description: 'Shown once; null if the request is repeated under its Idempotency-Key.',
});

/** The output of an operation that makes a file. It is not stored. */
export type File = {
  readonly name: string;
  readonly mediaType: string;
  readonly content: string | Buffer | AsyncIterable<string | Buffer>;
};

export const FileSchema = Type.Unsafe<File>({ type: 'string', description: 'The file.' });

export const Reason = Type.Optional(Nullable(Line(500, 'Why, for the audit.', 'The customer asked for it.')));

/** The operator's reference of a booking. */
export const Reference = Line(100, 'Your reference: a repetition under it books once.', 'case-81');

/** A merchant's reference, which may have characters that `Line` refuses, such as joined emoji. */
export const LookupReference = (description: string) =>
  Type.String({ minLength: 1, maxLength: 100, description, examples: ['order-10071'] });

/** The input of an operation. Other fields are refused. */
export function Input<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Returns the number of an id. @throws Problem that names the field if the text is not an id */
export function toId(text: string, field = 'id'): number {
  const id = Number(text);
  if (id > ID_MAX) throw invalid(field, 'maximum', 'must be an id, which is at most 2147483647');
  return id;
}

export const Day = Type.String({
  'x-format': 'day',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
  description: 'A day.',
  examples: ['2026-01-31'],
});

/** Checks a day. @throws Problem that names the field if the day does not exist */
export function checkDay(day: string | undefined, field: string): void {
  if (day !== undefined && !isDay(day))
    throw invalid(field, 'format', 'must be a day that exists, such as 2026-01-31');
}

const DAY_OR_TIME = '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,3})?)?(Z|[+-]\\d{2}:\\d{2})?)?$';

const Moment = (edge: 'beginning' | 'end', example: string) => (description: string) =>
  Type.String({
    'x-format': 'day',
    pattern: DAY_OR_TIME,
    maxLength: 40,
    description: `${description} A day, whose ${edge} in the zone of the books it is, or a date and time.`,
    examples: [example],
  });

/** The time at which something ends or begins. */
export const End = Moment('end', '2030-01-31');
export const Start = Moment('beginning', '2026-01-31');

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
};

/** Says which type a field has. @param types of JSON Schema: a name, or a list of them */
export function mustBe(types: unknown): string {
  return `must be ${[types]
    .flat()
    .map((type) => TYPES[String(type)] ?? type)
    .join(' or ')}`;
}

export function parametersOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** Returns the type of a field of an input. The texts of a query are converted to it. */
export function typeOf({ properties }: TObject, field: string): string | undefined {
  const { type } = (properties[field] ?? {}) as { type?: string | readonly string[] };
  return Array.isArray(type) ? type[0] : (type as string | undefined);
}

export const Currency = Type.String({
  pattern: '^[A-Z]{3}$',
  description: 'A code of ISO 4217.',
  examples: ['USD'],
});

/** The greatest amount in major units that a request can name: fifteen digits. */
export const AMOUNT_MAX = 999_999_999_999_999;

/** An amount above zero, in major units. The core refuses more decimals than the currency has. */
export function Amount(description: string) {
  return Type.Number({ exclusiveMinimum: 0, maximum: AMOUNT_MAX, description, examples: [25] });
}

/**
 * An amount in an answer, in minor units, which are rendered in major units of the currency beside it
 * (src/operation.ts).
 * @param of what it opens into, or why it is not a sum
 */
export function Money(of: Figure, description?: string) {
  return Opening(
    of,
    Type.Unsafe<bigint>({ type: 'number', format: 'money', ...(description && { description }) }),
  );
}

/**
 * An amount or a number in an answer that opens into what adds up to it, as `x-entries` says
 * (src/figure.ts).
 */
export function Opening<Schema extends TSchema>(entries: Figure, figure: Schema): Schema {
  return { ...figure, 'x-entries': entries };
}

/** An amount in an answer that a request named, in major units of the currency beside it. */
export function Major(description?: string) {
  return Opening(REQUESTED, Type.Number({ format: 'money', ...(description && { description }) }));
}

/** Returns the decimals of a currency. @throws Problem that names the field if the currency does not exist */
export function requireDecimals(currency: string, field = 'currency'): number {
  const decimals = decimalsOf(currency);
  if (decimals === undefined)
    throw invalid(field, 'currency', 'must be a code of ISO 4217, such as USD or EUR');
  return decimals;
}

/**
 * Returns an amount in minor units.
 * @throws Problem that names the field for more decimals than the currency has
 */
export function minorOf(value: number, currency: string, field: string): bigint {
  const decimals = requireDecimals(currency);
  try {
    return toPositiveMinor(value, decimals);
  } catch {
    throw invalid(
      field,
      'amount',
      `must be above zero and not too large, and ${currency} has ${decimals} decimals`,
    );
  }
}

export const PERCENT_PPM = 10_000;
const PERCENT_DECIMALS = 4;

/** A percentage with up to four decimals. */
export function Percent(description: string) {
  return Type.Number({ 'x-format': 'percent', minimum: 0, maximum: 100, description, examples: [2.5] });
}

/**
 * Returns a percentage as parts per million.
 * @throws Problem that names the field for more than four decimals
 */
export function toPpm(percent: number, field: string): number {
  const decimal = parseDecimal(String(percent));
  if (!decimal || decimal.scale > PERCENT_DECIMALS)
    throw invalid(field, 'decimals', 'has up to four decimals, such as 2.5');
  return Number(decimal.digits) * 10 ** (PERCENT_DECIMALS - decimal.scale);
}
