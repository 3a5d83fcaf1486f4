import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { type CsvStyle, csvText } from '../books/csv.ts';
import { setBreakageRate } from '../books/rates.ts';
import { findReport, makeReport, REPORTS } from '../books/reports/index.ts';
import type { Cell, Report, Table, Wanted } from '../books/reports/report.ts';
import {
  streamTransactions,
  TRANSACTION_COLUMNS,
  type TransactionLine,
} from '../books/reports/transactions.ts';
import { requireMerchant, requireProduct } from './money.ts';
import { withOperator, withService } from './open.ts';
import { printJson, printTable, say, toJson as toJsonText, wrongUsage } from './output.ts';
import { parseDay, parseId } from './parse.ts';

type Options = {
  json?: boolean;
  csv?: boolean;
  european?: boolean;
  from: string;
  to: string;
  merchant?: string;
  section?: string;
};

/** R8 is written row by row. */
const STREAMED = ['R8', 'transactions'];
const NAMES = [...REPORTS, { report: 'R8', name: 'transactions' }].map(
  ({ report, name }) => `${report} ${name}`,
);

/** Adds the reports to the commands of the books. */
export function addBooksReport(books: Command): void {
  books
    .command('report <report>')
    .description(`make a report by its number or its name: ${NAMES.join(', ')}`)
    .requiredOption('--from <day>', 'the first day')
    .requiredOption('--to <day>', 'the day behind the last one')
    .option('--merchant <id>', 'the merchant (R6, R8; R7: default all)')
    .option('--section <name>', 'of a report with several kinds of tables, this one alone')
    .option('--csv', 'print CSV')
    .option('--european', 'CSV with semicolons, and amounts with a comma')
    .option('--json', 'print JSON')
    .action(report);
  books
    .command('breakage-rate <product>')
    .description(
      'estimate what part of the vouchers of a product is never redeemed, with a reason (--reason)',
    )
    .requiredOption('--percent <percent>', 'from 0 to 100, such as 8.5')
    .option('--json', 'print JSON')
    .action(rate);
}

async function report(name: string, options: Options): Promise<void> {
  const from = parseDay(options.from, '--from');
  const to = parseDay(options.to, '--to');
  if (to <= from) wrongUsage('--to is the day behind the last one: it comes after --from');
  if (options.csv && options.json) wrongUsage('--csv and --json: choose one');
  const merchantId = options.merchant === undefined ? undefined : parseId(options.merchant);
  const isStreamed = STREAMED.includes(name) || name === 'r8';
  const kind = findReport(name);
  if (!kind && !isStreamed) wrongUsage(`there is no such report: the reports are ${NAMES.join(', ')}`);
  await withService(async (service) => {
    if (merchantId !== undefined) await requireMerchant(service.db, merchantId);
    const wanted = { from, to, merchantId };
    if (!kind) {
      if (merchantId === undefined) wrongUsage('R8 is of one merchant: give --merchant');
      const lines = streamTransactions(service, { ...wanted, merchantId });
      await pipeline(writeLines(lines, wanted, options), process.stdout, { end: false });
      return;
    }
    const made = selectSection(await makeReport(service, kind, wanted), options.section);
    if (options.json) printJson(toJson(made));
    else if (options.csv) process.stdout.write(toCsv(made, options.european ? 'european' : 'standard'));
    else print(made);
  });
}

function selectSection(made: Report, section: string | undefined): Report {
  if (section === undefined) return made;
  const tables = made.tables.filter((each) => each.section === section);
  const sections = [...new Set(made.tables.flatMap((each) => each.section ?? []))];
  if (tables.length === 0 && !sections.includes(section) && made.tables.length > 0)
    wrongUsage(`--section: this report has ${sections.join(', ') || 'no sections'}`);
  return { ...made, tables };
}

/** What every row of a CSV begins with, so that a row says by itself what it is of. */
const HEAD = ['report', 'from', 'to', 'zone', 'state', 'closingHash', 'section', 'currency'];

/**
 * A header for each kind of table; a report of a closed day is the same to the byte, whenever and
 * wherever it is made.
 */
function toCsv(made: Report, style: CsvStyle): string {
  const head = (table: Table) => [
    ...[made.report, made.from, made.to, made.zone, made.state, made.closingHash],
    ...[table.section ?? null, table.currency],
  ];
  let columns = '';
  return made.tables
    .map((table) => {
      const own = table.columns.join();
      const header: Cell[][] = own === columns ? [] : [[...HEAD, ...table.columns]];
      columns = own;
      return csvText([...header, ...table.rows.map((row) => [...head(table), ...row])], style);
    })
    .join('');
}

const plain = (cell: Cell) => (cell !== null && typeof cell === 'object' ? cell.amount : cell);

/** Rows as objects; amounts as text, so that none is rounded on its way. */
function toJson({ tables, ...head }: Report) {
  return {
    ...head,
    tables: tables.map(({ columns, rows, ...table }) => ({
      ...table,
      rows: rows.map((row) =>
        Object.fromEntries(columns.map((column, at) => [column, plain(row[at] ?? null)])),
      ),
    })),
  };
}

function print(made: Report): void {
  const { report: number, name, from, to, zone, state, closingHash, madeAt, sign } = made;
  say(`${number} ${name}: ${from} to ${to} (exclusive), ${zone}, ${state}; amounts are ${sign}`);
  say(`made ${madeAt.toISOString()}${closingHash === null ? '' : `, closing ${closingHash}`}`);
  for (const { section, currency, columns, rows } of made.tables) {
    say([section, currency].filter(Boolean).join(', '));
    printTable(
      columns,
      rows.map((row) => row.map((cell) => String(plain(cell) ?? ''))),
    );
  }
  if (made.tables.length === 0) say('nothing to report');
}

/** R8 as CSV, or as one JSON document. */
async function* writeLines(
  lines: AsyncIterable<TransactionLine>,
  { from, to }: Wanted,
  { json, european }: Options,
): AsyncGenerator<string> {
  if (json) {
    let before = `{"report":"R8","name":"transactions","from":"${from}","to":"${to}","rows":[\n`;
    for await (const line of lines) {
      yield `${before}${toJsonText(line)}`;
      before = ',\n';
    }
    yield before === ',\n' ? '\n]}\n' : `${before}]}\n`;
    return;
  }
  const style = european ? 'european' : 'standard';
  yield csvText([TRANSACTION_COLUMNS], style);
  for await (const line of lines) {
    const cells = TRANSACTION_COLUMNS.map((column) =>
      column === 'amount' ? { amount: line[column] ?? '' } : line[column],
    );
    yield csvText([cells], style);
  }
}

const PERCENT = /^(\d{1,3})(?:\.(\d{1,4}))?$/;

async function rate(code: string, options: { json?: boolean; percent: string }): Promise<void> {
  const [, whole = '', part = ''] = PERCENT.exec(options.percent) ?? [];
  const ratePpm = whole === '' ? -1 : Number(whole) * 10_000 + Number(part.padEnd(4, '0'));
  if (ratePpm < 0 || ratePpm > 1_000_000) wrongUsage('--percent takes a number from 0 to 100, such as 8.5');
  await withOperator(async (operator) => {
    const { id: productId } = await requireProduct(operator.service.db, code);
    await setBreakageRate(operator, { productId, code, ratePpm });
    if (options.json) printJson({ product: code, percent: options.percent });
    else say(`${options.percent} % of ${code} are estimated never to be redeemed`);
  });
}
