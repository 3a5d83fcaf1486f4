import { hash } from 'node:crypto';
import Type, { type TObject, type TProperties, type TSchema } from 'typebox';
import type { Service } from '../context.ts';
import { type SpanOfDay, spanOfDay } from '../ledger/zone.ts';
import { decimalsOf, parseDecimal, toPositiveMinor } from '../money.ts';
import { Nullable } from '../schema.ts';
import { isDay } from '../time.ts';
import { invalid } from './problem.ts';

/** Fields that the inputs and outputs of several operations share. */

const ID_MAX = 2_147_483_647;

/** An id in the path or in a field. */
export function Id(what: string) {
  return Type.String({
    pattern: '^[1-9][0-9]{0,9}$',
    description: `The id of the ${what}.`,
    examples: ['1'],
  });
}

export const MerchantId = Id('merchant');

export const SerialNumber = Type.String({
  pattern: '^[1-9][0-9]{0,14}$',
  description: 'The serial number of the voucher.',
  examples: ['10000000064'],
});

export const TransactionId = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
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

export const Time = Type.Unsafe<Date>({
  type: 'string',
  format: 'date-time',
  description: 'ISO 8601, in UTC.',
});
export const NullableTime = Type.Unsafe<Date | null>({ ...Time, type: ['string', 'null'] });
export const Text = Type.String();
export const NullableText = Nullable(Text);
export const Count = Type.Integer({ minimum: 0 });

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

/** The reason for a change, for the audit. */
export const Reason = Type.Optional(Nullable(Line(500, 'Why, for the audit.', 'The customer asked for it.')));

/** The input of an operation. Other fields are refused. */
export function Input<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** The fields of every listing besides its filters. */
export const PAGE = {
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 500, description: 'The `nextCursor` of the page before.' }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      default: 50,
      description: 'The highest number of items on a page.',
    }),
  ),
};

/** A page of a list, and the cursor of the next page; null on the last page. */
export function Page<Item extends TSchema>(items: Item) {
  return Type.Object({ items: Type.Array(items), nextCursor: NullableText });
}

/** Returns the number of an id. @throws Problem that names the field if the text is not an id */
export function toId(text: string, field = 'id'): number {
  const id = Number(text);
  if (id > ID_MAX) throw invalid(field, 'maximum', 'must be an id, which is at most 2147483647');
  return id;
}

export const Day = Type.String({
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
  description: 'A day.',
  examples: ['2026-01-31'],
});

/** Checks a day. @throws Problem that names the field if the day does not exist */
export function checkDay(day: string | undefined, field: string): void {
  if (day !== undefined && !isDay(day))
    throw invalid(field, 'format', 'must be a day that exists, such as 2026-01-31');
}

/** A day, or a date and time. */
const DAY_OR_TIME = '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,3})?)?(Z|[+-]\\d{2}:\\d{2})?)?$';

export function End(description: string) {
  const rule = 'A day, whose end in the zone of the books it is, or a date and time.';
  return Type.String({
    pattern: DAY_OR_TIME,
    maxLength: 40,
    description: `${description} ${rule}`,
    examples: ['2030-01-31'],
  });
}

export function Start(description: string) {
  const rule = 'A day, whose beginning in the zone of the books it is, or a date and time.';
  return Type.String({
    pattern: DAY_OR_TIME,
    maxLength: 40,
    description: `${description} ${rule}`,
    examples: ['2026-01-31'],
  });
}

type OfBooks = { readonly service: Pick<Service, 'db'> };

/**
 * Returns the end of a day in the zone of the books, or a time.
 * @throws Problem that names the field for a date that does not exist
 */
export function toEnd(caller: OfBooks, text: string, field: string): Promise<Date> {
  return toTime(caller, text, field, 'endsAt');
}

/**
 * Returns the start of a day in the zone of the books, or a time.
 * @throws Problem that names the field for a date that does not exist
 */
export function toStart(caller: OfBooks, text: string, field: string): Promise<Date> {
  return toTime(caller, text, field, 'startsAt');
}

/**
 * Returns an interval from its first moment up to, but not including, `until`; null for an open end.
 * @throws Problem that names the field for a date that does not exist, or an end before the start
 */
export async function toSpan(
  caller: OfBooks,
  { from, to }: { from?: string | null | undefined; to?: string | null | undefined },
) {
  const start = from ? await toStart(caller, from, 'from') : null;
  const end = to ? await toEnd(caller, to, 'to') : null;
  if (start && end && end < start) throw invalid('to', 'order', 'comes before from');
  return { from: start, until: end && new Date(end.getTime() + 1) };
}

/** The end of the last year with four digits: dates have four-digit years everywhere in the service. */
const LAST_MS = Date.UTC(10_000, 0) - 1;

async function toTime(
  { service: { db } }: OfBooks,
  text: string,
  field: string,
  side: keyof SpanOfDay,
): Promise<Date> {
  const day = text.slice(0, 10);
  const rule = 'must be a day such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z';
  if (!isDay(day)) throw invalid(field, 'format', rule);
  const isZoned = /(Z|[+-]\d{2}:\d{2})$/.test(text.slice(day.length));
  const time = text === day ? (await spanOfDay(db, day))[side] : new Date(isZoned ? text : `${text}Z`);
  if (Number.isNaN(time.getTime()) || time.getTime() > LAST_MS) throw invalid(field, 'format', rule);
  return time;
}

/** Returns the names of the parameters in a path. */
export function parametersOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** Returns the type of a field of an input. The texts of a query are converted to it. */
export function typeOf({ properties }: TObject, field: string): string | undefined {
  const { type } = (properties[field] ?? {}) as { type?: string | readonly string[] };
  return Array.isArray(type) ? type[0] : (type as string | undefined);
}

/** The sort key of the last item of a page. */
export type Position = readonly (string | number)[];

const DIGEST_LENGTH = 12;

/** Returns the digest of a list, its filters and a position. A cursor is valid only for the same digest. */
function digestOf(list: string, filters: object, position: readonly unknown[]): string {
  const text = JSON.stringify([list, Object.entries(filters).sort(), position]);
  return hash('sha256', text, 'base64url').slice(0, DIGEST_LENGTH);
}

/** Returns a cursor that continues after a position of a list. */
export function writeCursor(list: string, filters: object, position: Position): string {
  return Buffer.from(JSON.stringify([digestOf(list, filters, position), ...position])).toString('base64url');
}

/**
 * Reads a cursor.
 * @returns undefined without a cursor, for the first page
 * @throws Problem for a cursor that was edited, or is one of another list or other filters
 */
export function readCursor(list: string, filters: object, cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [digest, ...position] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (digest === digestOf(list, filters, position)) return position as Position;
  } catch {
    // The text is not a cursor.
  }
  throw invalid(
    'cursor',
    'cursor',
    'is not a cursor of this list with these filters: begin with its first page',
  );
}

/**
 * Cuts a page out of rows that were read with one row more than the limit.
 * @param position returns the sort key of an item
 * @param scannedTo the position of the last row that was read, if reading stopped before the end of the list
 */
export function pageOf<Item>(
  list: string,
  filters: object,
  rows: readonly Item[],
  limit: number,
  position: (item: Item) => Position,
  scannedTo?: Position,
): { items: Item[]; nextCursor: string | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const end = rows.length > limit && last !== undefined ? position(last) : scannedTo;
  return { items, nextCursor: end ? writeCursor(list, filters, end) : null };
}

export const Currency = Type.String({
  pattern: '^[A-Z]{3}$',
  description: 'A code of ISO 4217.',
  examples: ['USD'],
});

/** An amount above zero, in major units. The core refuses more decimals than the currency has. */
export function Amount(description: string) {
  return Type.Number({ exclusiveMinimum: 0, maximum: 999_999_999_999_999, description, examples: [25] });
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
  return Type.Number({ minimum: 0, maximum: 100, description, examples: [2.5] });
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
