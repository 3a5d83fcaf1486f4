import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { BREAKDOWNS, plain, type Report, toReportJson, type Wanted } from '../books/reports/report.ts';
import { findReport, makeReport, REPORTS } from '../books/reports/reports.ts';
import {
  reportCsv,
  streamTransactions,
  type TransactionLine,
  transactionsCsv,
} from '../books/reports/transactions.ts';
import { withService } from './open.ts';
import { printJson, printTable, say, toJson as toJsonText, wrongUsage } from './output.ts';
import { oneOf, parseDay, parseId } from './parse.ts';
import { requireMerchant } from './perform.ts';

type Options = {
  json?: boolean;
  csv?: boolean;
  european?: boolean;
  from: string;
  to: string;
  merchant?: string;
  section?: string;
  breakdown?: string;
};

/** The names of R8, which is written row by row. */
const STREAMED = ['R8', 'transactions'];
const NAMES = [...REPORTS, { report: 'R8', name: 'transactions' }].map(
  ({ report, name }) => `${report} ${name}`,
);

/** Adds the reports to the commands of the books. */
export function addReport(books: Command): void {
  books
    .command('report <report>')
    .description(`make a report by its number or its name: ${NAMES.join(', ')}`)
    .requiredOption('--from <day>', 'the first day')
    .requiredOption('--to <day>', 'the day after the last one')
    .option('--merchant <id>', 'the merchant (R6, R8; R7: default all)')
    .option('--section <name>', 'only this section, of a report with several')
    .option('--breakdown <what>', 'R1 by merchant, R4 by product')
    .option('--csv', 'print CSV')
    .option('--european', 'CSV with semicolons and a decimal comma')
    .option('--json', 'print JSON')
    .action(report);
}

async function report(name: string, options: Options): Promise<void> {
  const from = parseDay(options.from, '--from');
  const to = parseDay(options.to, '--to');
  if (to <= from) wrongUsage('--to must be later than --from: it is the day after the last one');
  if (options.csv && options.json) wrongUsage('--csv and --json: choose one');
  const breakdown =
    options.breakdown === undefined ? undefined : oneOf(options.breakdown, '--breakdown', BREAKDOWNS);
  const merchantId = options.merchant === undefined ? undefined : parseId(options.merchant);
  const isStreamed = STREAMED.includes(name) || name === 'r8';
  const kind = findReport(name);
  if (!kind && !isStreamed) wrongUsage(`there is no such report: the reports are ${NAMES.join(', ')}`);
  // R8 is written as CSV unless --json is given.
  const isCsv = options.csv || (isStreamed && !options.json);
  if (options.european && !isCsv) wrongUsage('--european belongs to --csv');
  if (isStreamed && (options.section ?? options.breakdown) !== undefined)
    wrongUsage('R8 has no sections, and is not broken down');
  await withService(async (service) => {
    if (merchantId !== undefined) await requireMerchant(service.db, merchantId);
    const wanted = { from, to, merchantId };
    const style = options.european ? 'european' : 'standard';
    if (!kind) {
      if (merchantId === undefined) wrongUsage('R8 is of one merchant: give --merchant');
      const lines = streamTransactions(service, { ...wanted, merchantId });
      const pieces = options.json ? writeJson(lines, wanted) : transactionsCsv(lines, style);
      await pipeline(pieces, process.stdout, { end: false });
      return;
    }
    const made = await makeReport(service, kind, { ...wanted, section: options.section, breakdown });
    if (options.json) printJson(toReportJson(made));
    else if (options.csv) process.stdout.write(reportCsv(made, style));
    else print(made);
  });
}

function print(made: Report): void {
  const { report: number, name, from, to, zone, state, closingHash, madeAt, sign } = made;
  say(`${number} ${name}: ${from} to ${to} (exclusive), ${zone}, ${state}; amounts are ${sign}`);
  say(`made ${madeAt.toISOString()}${closingHash === null ? '' : `, closing ${closingHash}`}`);
  for (const { section, currency, number: statement, columns, rows } of made.tables) {
    say([section, currency, statement].filter(Boolean).join(', '));
    printTable(
      columns,
      rows.map((row) => row.map((cell) => String(plain(cell) ?? ''))),
    );
  }
  if (made.tables.length === 0) say('nothing to report');
}

/** Writes R8 as one JSON document. */
async function* writeJson(
  lines: AsyncIterable<TransactionLine>,
  { from, to }: Wanted,
): AsyncGenerator<string> {
  let before = `{"report":"R8","name":"transactions","from":"${from}","to":"${to}","rows":[\n`;
  for await (const line of lines) {
    yield `${before}${toJsonText(line)}`;
    before = ',\n';
  }
  yield before === ',\n' ? '\n]}\n' : `${before}]}\n`;
}
