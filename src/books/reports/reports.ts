import Type from 'typebox';
import type { Service } from '../../context.ts';
import { sql } from '../../db/sql.ts';
import { requireMerchant } from '../../merchants/merchants.ts';
import { type Caller, reading } from '../../operation.ts';
import { SEE } from '../../principal.ts';
import { invalid, notFound } from '../../problem.ts';
import type { Refusal } from '../../refusal.ts';
import { Day, FileSchema, Line, MerchantId, Word } from '../../schema.ts';
import { checkInterval, type ListedDay } from '../days.ts';
import { bank, generalLedger } from './accounting.ts';
import { merchantBalances, outstanding, trialBalance } from './balances.ts';
import { booked, cohorts, estimate } from './breakage.ts';
import { agesOf, issuerAcceptor, liability, liabilityByMonth, liabilityInTotal } from './liability.ts';
import {
  BREAKDOWNS,
  type Breakdown,
  type Definition,
  daysOf,
  openScope,
  type Report,
  type ReportJson,
  type Table,
  tablesOf,
  toReportJson,
  type Wanted,
  wrong,
} from './report.ts';
import { floatStatement, settlementStatement } from './statements.ts';
import { dormancy, unclaimed, vat } from './tax.ts';
import { reportCsv, streamTransactions, transactionsCsv } from './transactions.ts';

/** The reports, by number and name (docs/explanation/books.md). R8 is streamed: see transactions.ts. */
type Kind = {
  readonly report: string;
  readonly name: string;
  readonly tables: readonly Definition[];
  /** The report exists for closed days only: its data is made at the close. */
  readonly closedOnly?: true;
  /** The report can be restricted to one merchant. */
  readonly byMerchant?: true;
  /** Other tables of the report, which break its figures down. */
  readonly breakdowns?: Partial<Record<Breakdown, readonly Definition[]>>;
};

export const REPORTS: readonly Kind[] = [
  {
    report: 'R1',
    name: 'trial-balance',
    tables: [trialBalance],
    breakdowns: { merchant: [merchantBalances] },
  },
  { report: 'R2', name: 'liability', tables: [liability, liabilityInTotal, liabilityByMonth] },
  { report: 'R3', name: 'outstanding', tables: [outstanding] },
  {
    report: 'R4',
    name: 'aging',
    tables: agesOf(false),
    breakdowns: { product: agesOf(true) },
    closedOnly: true,
  },
  { report: 'R5', name: 'breakage', tables: [booked, cohorts, estimate] },
  { report: 'R6', name: 'float-statement', tables: [floatStatement], byMerchant: true },
  { report: 'R7', name: 'settlement-statement', tables: [settlementStatement], byMerchant: true },
  { report: 'R9', name: 'issuer-acceptor', tables: [issuerAcceptor] },
  { report: 'R10', name: 'dormancy', tables: [dormancy, unclaimed] },
  { report: 'R11', name: 'vat', tables: [vat], closedOnly: true },
  { report: 'R12', name: 'general-ledger', tables: [generalLedger], closedOnly: true },
  { report: 'R13', name: 'bank', tables: bank },
];

/** The reports that can be broken down, for the message of a refusal. */
const BROKEN_DOWN = REPORTS.flatMap(({ report, breakdowns = {} }) =>
  Object.keys(breakdowns).map((each) => `${report} by ${each}`),
).join(' and ');

/** Returns the report of a number or name, or undefined if there is none. */
export function findReport(name: string): Kind | undefined {
  return REPORTS.find((each) => each.report === name.toUpperCase() || each.name === name);
}

/**
 * Returns the tables of one section, or all.
 * @throws Refusal `30` for a section that the report does not have
 */
function selectSection(tables: readonly Table[], section: string | undefined): readonly Table[] {
  if (section === undefined) return tables;
  const found = tables.filter((table) => table.section === section);
  const sections = [...new Set(tables.flatMap((table) => table.section ?? []))];
  if (found.length === 0 && tables.length > 0)
    throw wrong('section', 'no-section', `this report has ${sections.join(', ') || 'no sections'}`);
  return found;
}

/** Returns a refusal that names the first day that is not closed. */
function notClosed(name: string, days: readonly ListedDay[], { to }: Wanted): Refusal {
  const open = days.find(({ state }) => state !== 'closed')?.day ?? to;
  const message = `${open} is not closed, and ${name} is made of closed days only`;
  return wrong('to', 'not-closed', message, { day: open });
}

/**
 * Makes a report of an interval of days from aggregates. A report of closed days never changes.
 * @throws Refusal `30` for days that are not in the books, for days that are not closed if the report is of
 *   closed days only, for a merchant if the report cannot be restricted to one, and for a breakdown that it
 *   does not have
 */
export async function makeReport(service: Service, kind: Kind, wanted: Wanted): Promise<Report> {
  if (wanted.merchantId !== undefined && !kind.byMerchant)
    throw wrong(
      'merchantId',
      'all-merchants',
      `${kind.report} is of all merchants; R6, R7 and R8 are of one`,
    );
  const definitions = wanted.breakdown === undefined ? kind.tables : kind.breakdowns?.[wanted.breakdown];
  if (!definitions)
    throw wrong(
      'breakdown',
      'no-breakdown',
      `${kind.report} is not broken down by ${wanted.breakdown}: ${BROKEN_DOWN} are`,
    );
  const days = await daysOf(service, wanted);
  return service.db.transaction(async (tx) => {
    // A report reads aggregates; for an open day also the rows since the last sealed slice.
    await tx.query(sql`set transaction read only`);
    await tx.query(sql`set local statement_timeout = '10min'`);
    await tx.query(sql`set local enable_bitmapscan = on`);
    const { scope, closingHash, madeAt } = await openScope(service, tx, wanted, days);
    if (kind.closedOnly && !scope.isClosed) throw notClosed(kind.name, days, wanted);
    const made: Table[] = [];
    for (const definition of definitions) made.push(...(await tablesOf(definition, scope)));
    const tables = selectSection(made, wanted.section);
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

const Section = Type.Optional(Line(40, 'Of a report with several kinds of tables, this one alone.', 'total'));
const BreakdownField = Type.Optional(
  Word(BREAKDOWNS, { description: 'Broken down: R1 by merchant, R4 by product.', examples: ['merchant'] }),
);
const REPORT_NAMES = REPORTS.flatMap(({ report, name }) => [report, name]);

export const report = reading({
  name: 'books.report',
  summary: 'Make a report of an interval of days; a report of closed days never changes',
  description:
    'A row has a field for each of the `columns`. Money is decimal text, in the columns that `amounts` names. ' +
    'R8 (`transactions`) is `books.report-csv`.',
  path: '/books/reports/:report',
  input: {
    report: Word(REPORT_NAMES, { description: 'Its number or its name.', examples: ['R1'] }),
    from: Day,
    to: Day,
    merchantId: Type.Optional(MerchantId),
    section: Section,
    breakdown: BreakdownField,
  },
  output: Type.Unsafe<ReportJson>({ type: 'object', required: ['report', 'name', 'tables', 'state'] }),
  isHeavy: true,
  roles: SEE,
  async run(caller, { report: name, from, to, merchantId, section, breakdown }) {
    checkInterval({ from, to });
    const kind = findReport(name);
    if (!kind) throw notFound(`report ${name}`);
    const wanted = { from, to, merchantId: await merchantIdOf(caller, merchantId), section, breakdown };
    return toReportJson(await makeReport(caller.service, kind, wanted));
  },
});

export const CSV_TYPE = 'text/csv; charset=utf-8';
export const European = Type.Optional(Type.Boolean({ description: 'With semicolons and a decimal comma.' }));
const STREAMED = ['R8', 'transactions'] as const;

/** Returns the id of a merchant that a request may name. @throws Problem if there is no such merchant */
export async function merchantIdOf(caller: Caller, merchantId: string | undefined) {
  return merchantId === undefined ? undefined : (await requireMerchant(caller, merchantId, 'merchantId')).id;
}

export const reportCsvFile = reading({
  name: 'books.report-csv',
  summary: 'Get a report as CSV; for R8, all transactions of a merchant',
  path: '/books/reports/:report/csv',
  command: 'books report',
  input: {
    report: Word([...REPORT_NAMES, ...STREAMED], {
      description: 'Its number or its name.',
      examples: ['R1'],
    }),
    from: Day,
    to: Day,
    merchantId: Type.Optional(MerchantId),
    section: Section,
    breakdown: BreakdownField,
    european: European,
  },
  output: FileSchema,
  files: ['text/csv'],
  isHeavy: true,
  roles: SEE,
  async run(caller, { report: named, from, to, merchantId: merchant, section, breakdown, european }) {
    checkInterval({ from, to });
    const merchantId = await merchantIdOf(caller, merchant);
    const kind = findReport(named);
    const file = { name: `${named}-${from}-${to}.csv`, mediaType: CSV_TYPE };
    const style = european ? 'european' : 'standard';
    if (kind)
      return {
        ...file,
        content: reportCsv(
          await makeReport(caller.service, kind, { from, to, merchantId, section, breakdown }),
          style,
        ),
      };
    if (merchantId === undefined)
      throw invalid('merchantId', 'required', 'is required: R8 is of one merchant');
    if (section !== undefined) throw invalid('section', 'dependent', 'is not for R8, which has no sections');
    if (breakdown !== undefined)
      throw invalid('breakdown', 'no-breakdown', 'is not for R8, whose lines are transactions');
    const lines = streamTransactions(caller.service, { from, to, merchantId });
    return { ...file, content: transactionsCsv(lines, style) };
  },
});
