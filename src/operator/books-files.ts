import { PassThrough } from 'node:stream';
import Type from 'typebox';
import { DayNotClosed } from '../books/export.rows.ts';
import { EXPORT_FORMATS, type ExportWanted, exportBooks, FORMATS_WITH } from '../books/export.ts';
import { Unmapped } from '../books/gl.ts';
import { findReport, makeReport } from '../books/reports/index.ts';
import { reportCsv, streamTransactions, transactionsCsv } from '../books/reports/transactions.ts';
import type { Service } from '../context.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { type Caller, reading, tableOf } from '../operation.ts';
import { EXPORT, SEE } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { Day, FileSchema, Input, MerchantId, Word } from '../schema.ts';
import { BreakdownField, checkInterval, REPORT_NAMES, Section } from './books.ts';

/** Files of the books: reports as CSV, and exports of closed days. */

const CSV_TYPE = 'text/csv; charset=utf-8';
const European = Type.Optional(Type.Boolean({ description: 'With semicolons and a decimal comma.' }));
const styleOf = (european: boolean | undefined) => (european ? 'european' : 'standard');

const STREAMED = ['R8', 'transactions'] as const;

async function merchantOf(caller: Caller, merchantId: string | undefined): Promise<number | undefined> {
  return merchantId === undefined ? undefined : (await requireMerchant(caller, merchantId, 'merchantId')).id;
}

const report = reading({
  name: 'books.report-csv',
  summary: 'Get a report as CSV; for R8, all transactions of a merchant',
  method: 'GET',
  path: '/books/reports/:report/csv',
  command: 'books report',
  input: Input({
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
  }),
  output: FileSchema,
  files: ['text/csv'],
  isHeavy: true,
  roles: SEE,
  async run(caller, { report: named, from, to, merchantId: merchant, section, breakdown, european }) {
    checkInterval({ from, to });
    const merchantId = await merchantOf(caller, merchant);
    const kind = findReport(named);
    const file = { name: `${named}-${from}-${to}.csv`, mediaType: CSV_TYPE };
    const style = styleOf(european);
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

const TYPES: Readonly<Record<ExportWanted['format'], readonly [extension: string, mediaType: string]>> = {
  beancount: ['beancount', 'text/plain; charset=utf-8'],
  hledger: ['journal', 'text/plain; charset=utf-8'],
  camt053: ['xml', 'application/xml'],
  gl: ['csv', CSV_TYPE],
  csv: ['csv', CSV_TYPE],
  ndjson: ['ndjson', 'application/x-ndjson'],
  sealed: ['ndjson', 'application/x-ndjson'],
};

const exportDays = reading({
  name: 'books.export',
  summary: 'Export closed days for an accounting system',
  method: 'GET',
  path: '/books/export',
  command: 'books export',
  input: Input({
    format: Word(EXPORT_FORMATS, { examples: ['csv'] }),
    from: Day,
    to: Day,
    merchantId: Type.Optional(MerchantId),
    rows: Type.Optional(
      Type.Boolean({
        description: 'beancount, hledger, gl: each row separately; left out: the sums of each day.',
      }),
    ),
    european: European,
  }),
  output: FileSchema,
  files: ['text/plain', 'application/xml', 'text/csv', 'application/x-ndjson'],
  roles: EXPORT,
  async run(caller, { format, from, to, ...given }) {
    checkInterval({ from, to });
    for (const [option, formats] of Object.entries(FORMATS_WITH))
      if (given[option as keyof typeof FORMATS_WITH] && !formats.some((each) => each === format))
        throw invalid(option, 'dependent', `belongs to ${formats.join(' and ')}`);
    const { merchantId, rows = false, european } = given;
    const [extension, mediaType] = TYPES[format];
    const wanted: ExportWanted = {
      format,
      from,
      to,
      merchantId: await merchantOf(caller, merchantId),
      style: styleOf(european),
      rowByRow: rows,
    };
    const content = exported(caller.service, wanted);
    return { name: `books-${from}-${to}.${extension}`, mediaType, content };
  },
});

/** Returns an export in pieces, as fast as its reader takes them. @throws Problem `conflict` */
async function* exported(service: Service, wanted: ExportWanted): AsyncGenerator<string> {
  const out = new PassThrough({ encoding: 'utf8' });
  const write = (piece: string) =>
    new Promise<void>((resolve, reject) => {
      if (out.destroyed) reject(new Error('the output was closed'));
      else out.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  exportBooks(service, wanted, write).then(
    () => out.end(),
    (error: Error) => out.destroy(error),
  );
  try {
    yield* out as AsyncIterable<string>;
  } catch (error) {
    if (error instanceof DayNotClosed || error instanceof Unmapped)
      throw new Problem('conflict', error.message);
    throw error;
  }
}

export const booksFiles = { report, export: exportDays };

export const BOOKS_FILES = tableOf(report, exportDays);
