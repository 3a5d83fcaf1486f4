import Type from 'typebox';
import type { Service } from '../../context.ts';
import { type Cell, CSV_TYPE, type CsvStyle, csvText, XLSX_TYPE } from '../../csv.ts';
import { readLong } from '../../db/session.ts';
import { requireMerchant } from '../../merchants/merchants.ts';
import { type Caller, reading, tableOf } from '../../operation.ts';
import { SEE } from '../../principal.ts';
import { invalid, notFound } from '../../problem.ts';
import type { Refusal } from '../../refusal.ts';
import { At, FileSchema, Line, MerchantId, pastTime, Word } from '../../schema.ts';
import { checkInterval, INTERVAL, type ListedDay } from '../days.ts';
import { bank, generalLedger, safeguarding } from './accounting.ts';
import { outstanding, trialBalance } from './balances.ts';
import { breakage } from './breakage.ts';
import { aging, issuerAcceptor, liability } from './liability.ts';
import {
  type About,
  BREAKDOWNS,
  type Breakdown,
  type Declaration,
  type Definition,
  daysOf,
  type Format,
  figuresOf,
  formatsOf,
  type Lines,
  openScope,
  type Report,
  ReportSchema,
  type Table,
  tablesOf,
  titleOf,
  type Wanted,
  wrong,
} from './report.ts';
import { floatStatement, settlementStatement } from './statements.ts';
import { dormancy, vat } from './tax.ts';
import { transactions } from './transactions.ts';

/** The reports of tables, by number. Each says what it is beside its tables (docs/reference/reports.md). */
export const REPORTS: readonly Declaration[] = [
  ...[trialBalance, liability, outstanding, aging, breakage, floatStatement, settlementStatement],
  ...[issuerAcceptor, dormancy, vat, generalLedger, bank, safeguarding],
];

const ORDER = new Intl.Collator('en', { numeric: true });

/** All reports, by number. */
export const ALL_REPORTS: readonly (Declaration | Lines)[] = [...REPORTS, transactions].sort((one, other) =>
  ORDER.compare(one.report, other.report),
);

/** The reports that can be broken down, and those that are of one merchant, for messages. */
const BROKEN_DOWN = REPORTS.flatMap(({ report, breakdowns = {} }) =>
  Object.keys(breakdowns).map((each) => `${report} by ${each}`),
);
const OF_MERCHANT = ALL_REPORTS.filter(({ ofMerchant }) => ofMerchant);

const isNamed = (name: string) => (each: About) => each.report === name.toUpperCase() || each.name === name;

/** Returns the report of a number or name, or undefined if there is none. */
export const findReport = (name: string) => REPORTS.find(isNamed(name));

/** Returns the report of lines of a number or name, or undefined if there is none. */
export const findLines = (name: string) => (isNamed(name)(transactions) ? transactions : undefined);

/**
 * Returns the definitions of one section, or all.
 * @throws Refusal `30` for a section that the report does not have
 */
function selectSection(definitions: readonly Definition[], section: string | undefined) {
  if (section === undefined) return definitions;
  const found = definitions.filter((definition) => definition.section === section);
  if (found.length > 0) return found;
  const sections = definitions.flatMap((definition) => definition.section ?? []);
  throw wrong('section', 'no-section', `this report has ${sections.join(', ') || 'no sections'}`);
}

/** Returns a refusal that names the first day that is not closed. */
function notClosed(name: string, days: readonly ListedDay[], { to }: Wanted): Refusal {
  const open = days.find(({ state }) => state !== 'closed')?.day ?? to;
  const message = `${open} is not closed, and ${name} is made of closed days only`;
  return wrong('to', 'not-closed', message, { day: open });
}

function checkMerchant({ report, ofMerchant }: About, { merchantId }: Wanted): void {
  if (ofMerchant === 'always' && merchantId === undefined)
    throw wrong('merchantId', 'required', `${report} is of one merchant: name it`);
  if (ofMerchant || merchantId === undefined) return;
  const others = listed(OF_MERCHANT.map((each) => each.report));
  throw wrong('merchantId', 'all-merchants', `${report} is of all merchants; ${others} are of one`);
}

const listed = (texts: readonly string[]) => `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;

function notBrokenDown({ report }: About, { breakdown }: Wanted): Refusal {
  const message = `${report} is not broken down by ${breakdown}: ${listed(BROKEN_DOWN)} are`;
  return wrong('breakdown', 'no-breakdown', message);
}

/**
 * Makes a report of an interval of days from aggregates. A report of closed days never changes.
 * @throws Refusal `30` for days that are not in the books, for days that are not closed if the report is of
 *   closed days only, for a merchant if the report cannot be restricted to one, and for a breakdown that it
 *   does not have
 */
export async function makeReport(service: Service, kind: Declaration, wanted: Wanted): Promise<Report> {
  checkMerchant(kind, wanted);
  if (wanted.at && !kind.endsAnytime) throw notAnytime(kind);
  const { breakdown } = wanted;
  const all = breakdown === undefined ? kind.tables : kind.breakdowns?.[breakdown];
  if (!all) throw notBrokenDown(kind, wanted);
  const definitions = selectSection(all, wanted.section);
  const days = await daysOf(service, wanted);
  return service.db.transaction(async (tx) => {
    // A report reads aggregates; for an open day also the rows since the last sealed slice.
    await readLong(tx, '10min');
    const { scope, closingHash, madeAt } = await openScope(service, tx, wanted, days);
    const { section } = wanted;
    if (kind.closedOnly && !scope.isClosed) throw notClosed(kind.name, days, wanted);
    if (section !== undefined && !scope.isClosed && definitions.every(({ isOfClosedDays }) => isOfClosedDays))
      throw notClosed(`${kind.name} ${section}`, days, wanted);
    const tables: Table[] = [];
    for (const definition of definitions) tables.push(...(await tablesOf(definition, scope)));
    return {
      report: kind.report,
      name: kind.name,
      from: scope.from,
      to: wanted.to,
      startsAt: scope.startsAt,
      endsAt: scope.endsAt,
      zone: scope.zone,
      state: scope.isClosed ? 'closed' : 'provisional',
      closingHash,
      madeAt,
      sign: 'credit minus debit',
      tables,
    };
  }, 'repeatable read');
}

const ANYTIME = REPORTS.filter(({ endsAnytime }) => endsAnytime).map(({ report }) => report);
const notAnytime = ({ report }: About) =>
  wrong('at', 'no-time', `${report} ends with a day: ${ANYTIME.join(' and ')} can end at any time`);

/** Returns the lines of a report. @throws Refusal `30` */
export function linesOf(service: Service, kind: Lines, wanted: Wanted) {
  checkMerchant(kind, wanted);
  if (wanted.at) throw notAnytime(kind);
  if (wanted.section !== undefined) throw wrong('section', 'no-section', 'this report has no sections');
  if (wanted.breakdown !== undefined) throw notBrokenDown(kind, wanted);
  return kind.lines(service, wanted);
}

const namesOf = (kinds: readonly About[]) => kinds.flatMap(({ report, name }) => [report, name]);
const ReportName = (names: readonly string[]) =>
  Word(names, { description: 'Its number or its name.', examples: ['R1'] });

const Asked = {
  ...INTERVAL,
  merchantId: Type.Optional(MerchantId),
  at: At,
  section: Type.Optional(Line(40, 'Of a report with several kinds of tables, this one alone.', 'total')),
  breakdown: Type.Optional(
    Word(BREAKDOWNS, { description: `Broken down: ${BROKEN_DOWN.join(', ')}.`, examples: ['merchant'] }),
  ),
};

type Asking = Pick<Caller, 'service'>;
type Asked = { readonly [Name in keyof typeof Asked]?: string | undefined };

/** Checks what is asked for. @throws Problem */
export async function toWanted(
  caller: Asking,
  { from = '', to = '', at, merchantId, section, breakdown }: Asked,
) {
  checkInterval({ from, to });
  return {
    ...{ from, to, merchantId: await merchantIdOf(caller, merchantId), section },
    breakdown: breakdown as Breakdown | undefined,
    at: pastTime(at, caller.service.clock()),
  };
}

/** The figures of the tables by the name of their section; empty: of a table without one. */
function figuresBySection(definitions: readonly Definition[]) {
  const found: Record<string, ReturnType<typeof figuresOf>> = {};
  for (const each of definitions) {
    const section = each.section ?? '';
    found[section] = { ...found[section], ...figuresOf(each) };
  }
  return found;
}

/** What pages need to know about the reports: titles, formats of columns, and the entries of figures. */
const described = REPORTS.map(
  ({ report, name, title, use, ofMerchant = null, endsAnytime = false, tables, breakdowns = {} }) => ({
    ...{ number: report, name, title, use, ofMerchant, endsAnytime },
    breakdowns: Object.keys(breakdowns),
    columns: Object.assign({}, ...[...tables, ...Object.values(breakdowns).flat()].map(formatsOf)),
    figures: figuresBySection([...tables, ...Object.values(breakdowns).flat()]),
  }),
);
const columnNames = described.flatMap(({ columns }) =>
  Object.keys(columns).filter((name) => columns[name] !== 'id'),
);

export const report = reading({
  name: 'books.report',
  summary: 'Make a report of an interval of days; a report of closed days never changes',
  description:
    'A row has a field for each of the `columns`. Money is decimal text, in the columns that `amounts` names. ' +
    'R8 (`transactions`) is `books.report-csv`.',
  path: '/books/reports/:report',
  input: { report: ReportName(namesOf(REPORTS)), ...Asked },
  output: Type.Object(ReportSchema.properties, {
    'x-reports': described,
    'x-titles': Object.fromEntries([...new Set(columnNames)].sort().map((name) => [name, titleOf(name)])),
  }),
  isHeavy: true,
  roles: SEE,
  async run(caller, { report: name, ...asked }) {
    const kind = findReport(name);
    if (!kind) throw notFound(`report ${name}`);
    return makeReport(caller.service, kind, await toWanted(caller, asked));
  },
});

const FILE_FORMATS = ['csv', 'xlsx'] as const;

export const European = Type.Optional(Type.Boolean({ description: 'With semicolons and a decimal comma.' }));

/** Returns the id of a merchant that a request may name. @throws Problem if there is no such merchant */
export async function merchantIdOf(caller: Asking, merchantId: string | undefined) {
  return merchantId === undefined ? undefined : (await requireMerchant(caller, merchantId, 'merchantId')).id;
}

/** Makes a report as rows of cells. @throws Problem; Refusal `30` */
async function rowsOf({ service }: Asking, named: string, asked: Asked): Promise<Rows> {
  const wanted = await toWanted({ service }, asked);
  const [kind, lines] = [findReport(named), findLines(named)];
  if (kind) return reportRows(await makeReport(service, kind, wanted));
  if (!lines) throw notFound(`report ${named}`);
  return lineRows(lines, linesOf(service, lines, wanted));
}

export const reportCsvFile = reading({
  name: 'books.report-csv',
  summary: 'Get a report as a file: CSV, or a workbook (XLSX); for R8, all transactions of a merchant',
  description:
    'A workbook has the columns of the CSV: figures are numbers, times are in UTC, and the numbers of ' +
    'vouchers are texts. A sheet holds 1,048,576 rows; more go on in another one.',
  path: '/books/reports/:report/csv',
  command: 'books report',
  input: {
    report: ReportName(namesOf(ALL_REPORTS)),
    ...Asked,
    format: Type.Optional(
      Word(FILE_FORMATS, { description: 'The format of a file: CSV if it is left out. `xlsx`: a workbook.' }),
    ),
    european: European,
  },
  output: FileSchema,
  files: ['text/csv', XLSX_TYPE],
  isHeavy: true,
  roles: SEE,
  async run(caller, { report: named, format = 'csv', european, ...asked }) {
    if (european && format !== 'csv') throw invalid('european', 'dependent', 'belongs to CSV');
    const rows = await rowsOf(caller, named, asked);
    const name = `${named}-${asked.from}-${asked.to}.${format}`;
    if (format === 'xlsx') {
      // Most processes write no workbook.
      const { writeXlsx } = await import('../../xlsx.ts');
      return { name, mediaType: XLSX_TYPE, content: inBuffers(writeXlsx(rows)) };
    }
    const style = european ? 'european' : 'standard';
    const content = Array.isArray(rows) ? csvText(rows, style) : csvLines(rows, style);
    return { name, mediaType: CSV_TYPE, content };
  },
});

async function* inBuffers(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const { buffer, byteOffset, byteLength } of pieces)
    yield Buffer.from(buffer, byteOffset, byteLength);
}

/** Reports as rows. The CSV of closed days is the same to the byte, on every machine and at any time. */
type Rows = Cell[][] | AsyncIterable<Cell[]>;

/** The first columns of every row. They show which report the row belongs to. */
const HEAD = ['report', 'from', 'to', 'zone', 'state', 'closingHash', 'section', 'currency'];

/** Returns the rows of a report, with a header for each kind of table. */
function reportRows(made: Report): Cell[][] {
  const formats = described.find(({ number }) => number === made.report)?.columns ?? {};
  const head = (table: Table): Cell[] => [
    ...[made.report, { date: made.from }, { date: made.to }, made.zone, made.state, made.closingHash],
    ...[table.section ?? null, table.currency],
    ...(table.number === undefined ? [] : [table.number]),
  ];
  let columns = '';
  return made.tables.flatMap((table) => {
    const named = table.number === undefined ? table.columns : ['number', ...table.columns];
    const own = named.join();
    const header: Cell[][] = own === columns ? [] : [[...HEAD, ...named]];
    columns = own;
    const rows = table.rows.map((row) => [
      ...head(table),
      ...table.columns.map((column) => cellOf(row[column] ?? null, formats[column])),
    ]);
    return [...header, ...rows];
  });
}

/** Returns a report as CSV. */
export const reportCsv = (made: Report, style: CsvStyle): string => csvText(reportRows(made), style);

function cellOf(value: string | number | null, format: Format | undefined): Cell {
  if (value === null) return null;
  if (format === 'money') return { amount: String(value) };
  if (format === 'count' || format === 'percent') return { number: String(value) };
  return format === 'time' ? { date: String(value) } : value;
}

/** Returns the rows of a report of lines while they are read. */
async function* lineRows({ columns }: Lines, lines: ReturnType<typeof linesOf>): AsyncGenerator<Cell[]> {
  yield Object.keys(columns);
  for await (const line of lines)
    yield Object.entries(columns).map(([name, format]) => cellOf(line[name] ?? null, format));
}

async function* csvLines(rows: AsyncIterable<Cell[]>, style: CsvStyle): AsyncGenerator<string> {
  for await (const row of rows) yield csvText([row], style);
}

export const OPERATIONS = tableOf(report, reportCsvFile);
