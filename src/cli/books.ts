import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { compareWith, publishBooks } from '../books/publish.ts';
import type { Lines, Report } from '../books/reports/report.ts';
import {
  ALL_REPORTS,
  findLines,
  linesOf,
  report,
  reportCsvFile,
  toWanted,
} from '../books/reports/reports.ts';
import { verify } from '../books/verify.ts';
import { tableOf } from '../operation.ts';
import { MerchantId } from '../schema.ts';
import { closeDay } from '../settlement/fees.ts';
import { addOperations, performOperation } from './commands.ts';
import { withService } from './open.ts';
import { numberOf, printJson, printTable, say, toJson, wrongUsage } from './output.ts';
import { addPack } from './pack.ts';
import { parseDay } from './parse.ts';
import { parseAs, performCommand, performFile } from './perform.ts';

/** Adds the commands of the books that stream, or have an exit status of their own. */
export function addBooks(books: Command): void {
  books
    .command('close')
    .description('close the days that are due, in order, and say why the next one is not')
    .option('--day <day>', 'the last day to close', (text) => parseDay(text, '--day'))
    .option('--json', 'print JSON')
    .action(close);
  books
    .command('publish <dir>')
    .description(
      'publish the closed days with a signed checkpoint in a folder, which any web server can serve',
    )
    .option('--json', 'print JSON')
    .action(publish);
  addVerify(books);
  addReport(books);
  addPack(books);
}

async function publish(folder: string, { json = false }: { json?: boolean }): Promise<void> {
  await withService(async (service) => {
    const { origin, size, root } = await publishBooks(service, folder);
    if (json) printJson({ origin, size, root: root.toString('hex') });
    else say(`published ${numberOf(size, 'day')} of ${origin}: ${root.toString('hex')}`);
  });
}

/** Adds `verify`, which can also compare the days with published ones. */
function addVerify(books: Command): void {
  type Given = { readonly json?: boolean; readonly against?: string };
  const perform = (input: object, { against, ...options }: Given) => {
    const both = async (...given: Parameters<typeof verify.run>) => {
      const found = await verify.run(...given);
      const breaks = against === undefined ? [] : await compareWith(given[0].service, against);
      return { ...found, ok: found.ok && breaks.length === 0, breaks: [...found.breaks, ...breaks] };
    };
    return performOperation({ ...verify, run: both }, input, options);
  };
  addOperations(books.command('verify'), [verify], perform, [
    ['--against <dir>', 'compare also with the days that were published in this folder'],
  ]);
}

/** The exit status is 1 if the day is not closed, or if a check of a closed day failed. */
async function close({ day, json }: { json?: boolean; day?: string }): Promise<void> {
  await performCommand(closeDay, day === undefined ? {} : { day }, (made) => {
    const { closed, waiting } = made;
    if (json) printJson(made);
    else printClosed(made);
    if (day && waiting && waiting.day <= day) process.exitCode = 1;
    if (closed.some(({ failed }) => failed.length > 0)) process.exitCode = 1;
  });
}

type Closed = Awaited<ReturnType<typeof closeDay.run>>;

function printClosed({ closed, waiting }: Closed): void {
  for (const each of closed) {
    const failed = each.failed.length > 0 ? `; it does not agree: ${each.failed.join(', ')}` : '';
    say(`${each.day} is closed: ${each.hash}${failed}`);
  }
  if (waiting) say(`not closed: ${waiting.reason}`);
  else if (closed.length === 0) say('nothing to close');
}

type Given = {
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly out?: string;
  readonly force?: boolean;
};
type Input = Parameters<typeof reportCsvFile.run>[1];

/** Adds the reports to the commands of the books. That of lines is a file or JSON, the others also tables. */
function addReport(books: Command): void {
  const command = books.command('report');
  const perform = (input: object, given: Given) => run(input as Input, given);
  addOperations(command, tableOf(report, reportCsvFile), perform, [
    ['--csv', 'as --format csv'],
    ['--out <file>', 'the file (default: stdout)'],
    ['--force', 'overwrite it'],
  ]);
  const names = ALL_REPORTS.map(({ report: number, name }) => `${number} ${name}`);
  command.description(`make a report by its number or its name: ${names.join(', ')}`);
}

async function run(input: Input, { csv, json = false, ...file }: Given): Promise<void> {
  const lines = findLines(input.report);
  const { european, format = csv || (lines && !json) ? 'csv' : undefined, ...wanted } = input;
  if (csv && format !== 'csv') wrongUsage('--csv and --format: choose one');
  if (format && json) wrongUsage('--json and a file: choose one');
  if (european !== undefined && format !== 'csv') wrongUsage('--european belongs to --csv');
  if (format === undefined && (file.out !== undefined || file.force))
    wrongUsage('--out and --force need --format');
  if (format) await performFile(reportCsvFile, { ...input, format }, file);
  else if (lines) await writeLines(lines, wanted);
  else await performCommand(report, wanted, (made) => (json ? printJson(made) : print(made)));
}

function print(made: Report): void {
  const { report: number, name, from, to, zone, state, closingHash, madeAt, sign } = made;
  say(`${number} ${name}: ${from} to ${to} (exclusive), ${zone}, ${state}; amounts are ${sign}`);
  say(`made ${madeAt.toISOString()}${closingHash === null ? '' : `, closing ${closingHash}`}`);
  for (const { section, currency, number: statement, columns, rows } of made.tables) {
    say([section, currency, statement].filter(Boolean).join(', '));
    printTable(
      columns,
      rows.map((row) => columns.map((column) => String(row[column] ?? ''))),
    );
  }
  if (made.tables.length === 0) say('nothing to report');
}

async function writeLines(kind: Lines, asked: Omit<Input, 'report'>) {
  const { merchantId } = asked;
  if (merchantId !== undefined) parseAs(MerchantId, merchantId, '--merchant');
  await withService(async (service) => {
    const wanted = await toWanted({ service }, asked);
    const { report: number, name } = kind;
    const { from, to } = wanted;
    let before = `${JSON.stringify({ report: number, name, from, to }).slice(0, -1)},"rows":[\n`;
    const pieces = async function* () {
      for await (const line of linesOf(service, kind, wanted)) {
        yield `${before}${toJson(line)}`;
        before = ',\n';
      }
      yield before === ',\n' ? '\n]}\n' : `${before}]}\n`;
    };
    await pipeline(pieces, process.stdout, { end: false });
  });
}
