import Type, { type Static } from 'typebox';
import type { Service } from '../../context.ts';
import type { Queries } from '../../db/pool.ts';
import { named, type Sql, sql } from '../../db/sql.ts';
import { type Figure, NUMBER, none } from '../../figure.ts';
import { labelOf } from '../../label.ts';
import { textIn } from '../../money.ts';
import { Refusal } from '../../refusal.ts';
import { Day, Nullable, Text, Time, Word } from '../../schema.ts';
import { addDays } from '../../time.ts';
import { type ListedDay, listDays } from '../days.ts';

export type Names = {
  readonly merchants: ReadonlyMap<number, string>;
  readonly products: ReadonlyMap<number, Product>;
};

type Product = { readonly id: number; readonly code: string; readonly scope: string };

type Row = { what: string; id: number; name: string; scope: string | null };

/** Returns the names of merchants at a time, and the codes and scopes of products. */
export async function readNames(tx: Queries, at: Date): Promise<Names> {
  const rows = await tx.query<Row>(sql`
select 'merchant' as what, m.id,
  coalesce((
    select n.name from merchant_names n
    where n.merchant_id = m.id and n.until >= ${at} order by n.until limit 1
  ), m.name) as name,
  null::text as scope
from merchants m
union all
select 'product', id, code, scope::text from products`);
  const products = rows.filter(({ what }) => what === 'product');
  return {
    merchants: new Map(rows.filter(({ what }) => what === 'merchant').map(({ id, name }) => [id, name])),
    products: new Map(products.map(({ id, name, scope }) => [id, { id, code: name, scope: scope ?? '' }])),
  };
}

async function findLastClosed(tx: Queries, day: string) {
  const [row] = await tx.query<{ hash: Buffer; closedAt: Date }>(
    sql`select hash, closed_at as "closedAt" from book_closings where day = ${day}::date`,
  );
  return row;
}

export const productOf = ({ products }: Names, id: number) => products.get(id)?.code ?? '';
export const merchantOf = ({ merchants }: Names, id: number) => (id === 0 ? '' : (merchants.get(id) ?? ''));

/** The request for a report: days from (inclusive) and to (exclusive), in the zone of the books. */
export type Wanted = {
  readonly from: string;
  readonly to: string;
  readonly merchantId?: number | undefined;
  /** Only this section of a report that has several. */
  readonly section?: string | undefined;
  /** Broken down by this, if the report can be. */
  readonly breakdown?: Breakdown | undefined;
  /** The end, instead of that of the last day, if the report can end within a day. */
  readonly at?: Date | undefined;
};

export const BREAKDOWNS = ['merchant', 'product'] as const;
export type Breakdown = (typeof BREAKDOWNS)[number];

const Cells = Type.Unsafe<Readonly<Record<string, string | number | null>>>({
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'null'] },
});

/** A table of one currency. */
const TableSchema = Type.Object({
  section: Type.Optional(Type.String({ description: 'Of a report with several kinds of tables.' })),
  currency: Text,
  number: Type.Optional(Type.String({ description: 'The number of a statement of closed days.' })),
  columns: Type.Array(Text),
  amounts: Type.Array(Text, { description: 'The columns that are amounts of the currency, as exact text.' }),
  rows: Type.Array(Cells, { description: 'Each has a field for each of the columns.' }),
});

export type Table = Static<typeof TableSchema>;

export const ReportSchema = Type.Object({
  report: Text,
  name: Text,
  from: Day,
  to: Day,
  startsAt: Time,
  endsAt: Time,
  zone: Text,
  state: Word(['closed', 'provisional'] as const, {
    description: 'A closed report never changes. A provisional one includes days that are not closed.',
  }),
  closingHash: Nullable(Text, { description: 'The hash of the last day; null if it is not closed.' }),
  madeAt: Time,
  sign: Word(['credit minus debit'] as const),
  tables: Type.Array(TableSchema),
});

/** A report. It was made when the last day was closed, or now if it is provisional. */
export type Report = Static<typeof ReportSchema>;

/** The requested interval with its times and names. */
export type Scope = Wanted & {
  readonly service: Service;
  readonly tx: Queries;
  readonly startsAt: Date;
  /** The end of the interval, or now if it has not ended. */
  readonly endsAt: Date;
  readonly zone: string;
  readonly isClosed: boolean;
  /** Reads the names at the end of the interval, once. */
  readonly names: () => Promise<Names>;
};

/** The formats that show names. A merchant or a product without an id is the total of all. */
const NAMED = {
  merchant: (id: unknown, { names }: Place) => (id === null ? 'total' : merchantOf(names, id as number)),
  product: (id: unknown, { names }: Place) => (id === null ? 'total' : productOf(names, id as number)),
  scope: (id: unknown, { names }: Place) => names.products.get(id as number)?.scope ?? '',
} as const;

/** Renders the value of a column. */
const FORMATS = {
  text: (value: unknown) => value as string | null,
  /** A word of the service, which pages show in their language. */
  word: (value: unknown) => value as string | null,
  /** The id of what the next column names. */
  id: (value: unknown) => value as string | null,
  percent: (value: unknown) => value as string | null,
  number: (value: unknown) => value as number | null,
  count: (value: unknown) => (value === null ? null : String(value)),
  time: (value: unknown) => (value as Date | null)?.toISOString() ?? null,
  money: (value: unknown, { currency }: Place) => (value === null ? null : textIn(currency, value as bigint)),
  ...NAMED,
} as const;

type Place = { readonly names: Names; readonly currency: string };
export type Format = keyof typeof FORMATS;

const NO_NAMES: Names = { merchants: new Map(), products: new Map() };

/** The formats of figures: each says what it adds up. */
type FigureFormat = 'money' | 'count';

/** A column that a statement computes. */
type Column = { readonly format: Format; readonly of: Sql; readonly figure?: Figure };

const column =
  (format: Exclude<Format, FigureFormat>, cast: Sql) =>
  (of: Sql): Column => ({ format, of: sql`(${of})${cast}` });

const figures =
  (format: FigureFormat) =>
  (of: Sql, figure: Figure): Column => ({ format, of: sql`(${of})::bigint`, figure });

export const text = column('text', sql`::text`);
export const word = column('word', sql`::text`);
export const id = column('id', sql`::text`);
export const money = figures('money');
export const count = figures('count');
export const time = column('time', sql`::timestamptz`);
export const number = (of: Sql): Column => ({ ...column('number', sql`::float8`)(of), figure: NUMBER });
export const merchant = column('merchant', sql`::integer`);
export const product = column('product', sql`::integer`);
/** The scope of a product. */
export const scope = column('scope', sql`::integer`);

/** A share of a whole in percent with two decimals, rounded half up. It is for display only. */
export const share = (part: Sql, whole: Sql): Column => ({
  ...column(
    'percent',
    sql`::text`,
  )(sql`case when (${whole}) = 0 then 0.00
    else round(div((${part}) * 20000.0 + (${whole}), 2.0 * (${whole})) / 100, 2) end`),
  figure: none('A share, and not a sum.'),
});

/** The titles of columns. That of any other follows from its name. */
const TITLES: Readonly<Record<string, string>> = {
  acceptor: 'Accepted by',
  acceptorId: 'Accepted by',
  basis: 'By',
  closing: 'Closing balance',
  closingHash: 'Day hash',
  earlierReversed: 'Of earlier days reversed',
  escheated: 'Paid to a state',
  gap: 'Gap before',
  inInterval: 'In the interval',
  isExceeded: 'More redeemed than expected',
  issueMonth: 'Issued in',
  kind: 'Type',
  minusFunding: 'Money held',
  opening: 'Opening balance',
  owed: 'Owed to others',
  own: 'Own money',
  policy: 'Expired value goes to',
  root: 'Root of its rows',
  scope: 'Accepted by',
  statedOn: 'Statement of',
  toBook: 'Still to book',
  voucherNumber: 'Voucher no.',
};

export const titleOf = (column: string) => TITLES[column] ?? labelOf(column);

/** What every report says about itself, once: the program, the console and the docs have it from here. */
export type About = {
  readonly report: `R${number}`;
  readonly name: string;
  readonly title: string;
  /** Who needs it, and when: what it shows. A sentence. */
  readonly use: string;
  /** Whether it must or can be of one merchant; left out: it is of all. */
  readonly ofMerchant?: 'always' | 'optionally';
};

/** A report of tables. */
export type Declaration = About & {
  readonly tables: readonly Definition[];
  /** The report exists for closed days only: its data is made at the close. */
  readonly closedOnly?: true;
  /** The report can end at any time. */
  readonly endsAnytime?: true;
  /** Other tables of the report, which break its figures down. */
  readonly breakdowns?: Partial<Record<Breakdown, readonly Definition[]>>;
};

/** A report of lines without a limit: they are written while they are read. */
export type Lines = About & {
  readonly columns: Readonly<Record<string, Format>>;
  lines(service: Service, wanted: Wanted): AsyncIterable<Static<typeof Cells>>;
};

export const figuresOf = ({ columns }: Pick<Definition, 'columns'>): Readonly<Record<string, Figure>> =>
  Object.fromEntries(
    Object.entries<Column | Made>(columns).flatMap(([name, each]) =>
      typeof each === 'object' && each.figure ? [[name, each.figure]] : [],
    ),
  );

export const formatsOf = ({ columns }: Pick<Definition, 'columns'>): Readonly<Record<string, Format>> =>
  Object.fromEntries(
    Object.entries<Column | Made>(columns).map(([name, each]) => [
      name,
      typeof each === 'string' ? each : each.format,
    ]),
  );

/**
 * The tables of a report, one for each currency. Their columns are computed by a statement, of which each
 * column is an expression, or the rows are made in code, and each column has a format.
 */
export type Definition = {
  /** The name of the section, if the report has several. */
  readonly section?: string;
  /** The tables exist for closed days only: their data is made at the close. */
  readonly isOfClosedDays?: true;
  /** The most rows that it has: nobody reads more. The refusal of more says what to do. */
  readonly limit?: { readonly count: number; readonly rule: string; readonly message: string };
  /** Returns the number of a statement of closed days. */
  readonly number?: (scope: Scope, currency: string) => string;
} & (
  | {
      readonly columns: Readonly<Record<string, Column>>;
      /** Returns the statement from its word `from` on. Its rows have a `currency`. */
      readonly from: (scope: Scope) => Sql;
    }
  | {
      readonly columns: Readonly<Record<string, Made>>;
      readonly rows: (scope: Scope) => Promise<readonly Values[]>;
    }
);

/** A column that is made in code. */
type Made = Exclude<Format, FigureFormat> | { readonly format: FigureFormat; readonly figure: Figure };

/** The values of a row by the names of the columns. */
type Values = Readonly<Record<string, unknown>> & { readonly currency: string };

/** Renders the values of a row, each in the format of its column. */
export function rendered<Column extends string>(
  formats: Readonly<Record<Column, Format>>,
  row: Values,
  names: Names,
): Readonly<Record<Column, string | number | null>> {
  const cells = Object.entries<Format>(formats).map(([column, format]) => [
    column,
    FORMATS[format](row[column] ?? null, { currency: row.currency, names }),
  ]);
  return Object.fromEntries(cells);
}

export async function tablesOf(definition: Definition, scope: Scope): Promise<Table[]> {
  const { section, columns, isOfClosedDays, limit, number } = definition;
  if (isOfClosedDays && !scope.isClosed) return [];
  const formats = formatsOf(definition);
  const rows = 'rows' in definition ? await definition.rows(scope) : await select(definition, scope);
  // There may be thousands of names, so a table that shows none does not read them.
  const names = Object.values(formats).some((format) => format in NAMED) ? await scope.names() : NO_NAMES;
  if (limit && rows.length > limit.count)
    throw wrong('report', limit.rule, limit.message, { most: limit.count });
  const groups = Object.entries(Object.groupBy(rows, ({ currency }) => currency)).sort();
  return groups.map(([currency, own = []]) => ({
    ...(section !== undefined && { section }),
    currency,
    ...(number && scope.isClosed && { number: number(scope, currency) }),
    columns: Object.keys(columns),
    amounts: Object.entries(formats).flatMap(([name, format]) =>
      format === 'money' && own.some((row) => (row[name] ?? null) !== null) ? [name] : [],
    ),
    rows: own.map((row) => rendered(formats, row, names)),
  }));
}

function select(
  { columns, from }: Extract<Definition, { readonly from: unknown }>,
  scope: Scope,
): Promise<Values[]> {
  const expressions = Object.fromEntries(Object.entries(columns).map(([name, { of }]) => [name, of]));
  return scope.tx.query<Values>(sql`select currency, ${named(expressions)}\n${from(scope)}`);
}

/** Reads the times of an interval. */
export async function openScope(service: Service, tx: Queries, wanted: Wanted, days: readonly ListedDay[]) {
  const [first, last] = [days[0], days.at(-1)];
  if (!first || !last) throw new Error('the interval has no days');
  const { at } = wanted;
  const isClosed =
    at === undefined && days.every(({ state }) => state === 'closed') && addDays(last.day, 1) === wanted.to;
  const now = service.clock();
  const closing = isClosed ? await findLastClosed(tx, last.day) : undefined;
  const lastEnd =
    last.state === 'open' ? new Date(Math.max(now.getTime() + 1, first.startsAt.getTime())) : last.endsAt;
  if (at && (at <= first.startsAt || at > lastEnd))
    throw wrong('at', 'in-interval', 'is not in the interval of the report');
  let names: Promise<Names> | undefined;
  const scope: Scope = {
    ...wanted,
    from: first.day,
    service,
    tx,
    startsAt: first.startsAt,
    endsAt: at ?? lastEnd,
    zone: last.zone,
    isClosed,
    names: () => (names ??= readNames(tx, at ?? lastEnd)),
  };
  return { scope, closingHash: closing?.hash.toString('hex') ?? null, madeAt: closing?.closedAt ?? now };
}

/**
 * Returns the days of an interval. If it begins before the books, the result begins with their first day.
 * @throws Refusal `30` if none of its days is in the books
 */
export async function daysOf(service: Service, { from, to }: Wanted): Promise<ListedDay[]> {
  const found = await listDays(service, { from, to });
  if (found.length > 0) return found;
  const days = await listDays(service);
  const [begins, ends] = [days[0]?.day, days.at(-1)?.day];
  const message = `the books have no day ${from}: they have those from ${begins} to ${ends}`;
  throw wrong('from', 'not-in-books', message, { first: begins, last: ends });
}

/**
 * Returns a refusal of one field of a request.
 * @param facts what the message says, as values, for pages in other languages
 */
export function wrong(
  field: keyof Wanted | 'report',
  rule: string,
  message: string,
  facts: Readonly<Record<string, unknown>> = {},
): Refusal {
  const errors = [{ field, rule, message, facts }];
  return new Refusal('30', { message: `Invalid request: ${message}`, errors });
}
