import { pipeline } from 'node:stream/promises';
import type * as print from '@scrip/print';
import type { Command } from 'commander';
import { exportBatch, exportReplacement, findReplacement, requireExportable } from '../batches/export.ts';
import { describeCards } from '../batches/sheets.ts';
import { LANGUAGES } from '../products/designs.ts';
import { SerialNumber, TransactionId } from '../schema.ts';
import { checkTarget, writeWhole } from './file.ts';
import { untilStopped, withOperator } from './open.ts';
import {
  explainOutcome,
  fail,
  interrupted,
  numberOf,
  printJson,
  readable,
  say,
  wrongUsage,
} from './output.ts';
import { oneOf } from './parse.ts';
import { parseAs, requireApproval } from './perform.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './signals.ts';
import { actor } from './usage.ts';

type Design = { readonly format: string; readonly font?: string; readonly language?: string };
type Options = Design & { readonly out?: string; readonly force?: boolean; readonly json?: boolean };

/** Adds the options of every export. */
function asExport(command: Command): Command {
  return command
    .requiredOption('--format <format>', 'csv, or pdf: a sheet of cards')
    .option('--force', 'overwrite the file')
    .option(
      '--font <file>',
      'pdf: a TrueType or OpenType font for names with letters that the built-in fonts lack',
    )
    .option(
      '--language <language>',
      'pdf: the language of the cards, en or de (default: that of their design, or en)',
    );
}

export function addExport(batch: Command): void {
  asExport(batch.command('export <transactionId>'))
    .description('write the codes and PINs of a completed batch for the printer; every export is recorded')
    .option('--out <file>', 'the file, or - for stdout (default: stdout, if it is no terminal)')
    .option('--json', 'print JSON; the export then goes into a file')
    .action(run);
}

export function addVoucherExport(voucher: Command): void {
  asExport(voucher.command('export <serial>'))
    .description('write the code and PIN of the voucher that replaced this one into a file, once')
    .requiredOption('--out <file>', 'the file')
    .option('--again', 'export again; needs --reason')
    .option('--json', 'print JSON')
    .action(runVoucher);
}

async function run(text: string, options: Options): Promise<void> {
  const transactionId = parseAs(TransactionId, text.toLowerCase(), 'the transaction id');
  const design = designOf(options);
  const { format } = design;
  const toStdout = checkTargetOptions(options, format);
  await untilStopped(async (service, _config, stop) => {
    const operator = { service, actor: actor() };
    await requireApproval(operator, 'batch export');
    const batch = await requireExportable(service, transactionId);
    const printed = await describeCards(service, batch, batch.product);
    const file = toStdout ? null : (options.out as string);
    if (file !== null) await checkTarget(file, options.force ?? false);
    const write = await prepareWriter(printed, service.clock(), design);
    const made = await exportBatch(operator, batch, format, async (vouchers, count) => {
      const pieces = write(withProgress(vouchers, count, stop, options.json), count);
      if (file === null) await writeToStdout(pieces);
      else await writeWhole(file, pieces, options.force ?? false);
    }).catch((error: unknown) => explainOutcome(error, '`scrip batch exports` shows the exports'));
    const { name: by, reason } = operator.actor;
    const shown = {
      exportId: String(made.id),
      transactionId,
      format,
      file,
      vouchers: made.vouchers,
      by,
      reason,
    };
    if (options.json) return printJson(shown);
    const line = `${numberOf(made.vouchers, 'voucher')} written to ${file ?? 'stdout'}; recorded as export ${made.id} by ${by}`;
    if (file !== null) say(line);
    else if (process.stderr.isTTY) process.stderr.write(`${readable(line)}\n`);
  });
}

/** Returns whether the export goes to stdout. It goes to no file that was not named: it is money. */
function checkTargetOptions({ json, out, force }: Options, format: 'csv' | 'pdf'): boolean {
  if (json && out === '-') wrongUsage('--json and --out - both need stdout');
  if (out === undefined && (json || process.stdout.isTTY)) wrongUsage('name the file: --out FILE');
  const toStdout = out === undefined || out === '-';
  if (force && toStdout) wrongUsage('--force needs a file: give --out FILE');
  if (toStdout && format === 'pdf' && process.stdout.isTTY)
    wrongUsage('a terminal cannot show a PDF: give --out FILE');
  return toStdout;
}

async function writeToStdout(pieces: AsyncIterable<string | Buffer>): Promise<void> {
  await pipeline(pieces, process.stdout, { end: false }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') fail('stdout was closed before the end: the export is recorded as aborted');
    throw error;
  });
}

/** How cards are drawn. Only a PDF has a language and a font. */
function designOf({ format: typed, font, language }: Design) {
  const format = oneOf(typed, '--format', ['csv', 'pdf'] as const);
  if (font !== undefined && format !== 'pdf') wrongUsage('--font needs --format pdf');
  if (language !== undefined && format !== 'pdf') wrongUsage('--language needs --format pdf');
  const chosen = language === undefined ? undefined : oneOf(language, '--language', LANGUAGES);
  return { format, language: chosen, font };
}

type Writer = (vouchers: AsyncIterable<print.Voucher[]>, count: number) => AsyncIterable<string | Buffer>;

/** Returns the writer of a format. Its package is loaded on demand, since no other command needs fonts. */
async function prepareWriter(
  batch: print.Batch,
  now: Date,
  { format, language, font }: ReturnType<typeof designOf>,
): Promise<Writer> {
  const { findUnprintable, isFont, writeCsv, writeSheet } = await import('@scrip/print');
  if (format === 'csv') return (vouchers) => writeCsv(batch, vouchers);
  if (font !== undefined && !isFont(font)) fail(`${font} is not a TrueType or OpenType font`);
  for (const name of findUnprintable(batch, font)) {
    process.stderr.write(
      `scrip: the font has no letters for "${readable(name)}", so an identifier is printed instead; see --font\n`,
    );
  }
  return (vouchers, count) =>
    writeSheet(batch, vouchers, { count, printedAt: now, language, nameFont: font });
}

/** Yields the pages unchanged, shows the progress, and stops when the command is asked to. */
async function* withProgress(
  vouchers: AsyncIterable<print.Voucher[]>,
  count: number,
  stop: Stop,
  quiet = false,
) {
  const progress = showProgress('vouchers', quiet);
  let done = 0;
  try {
    for await (const page of vouchers) {
      if (stop.isAsked()) interrupted('interrupted: the export is recorded as aborted');
      yield page;
      done += page.length;
      progress.update(done, count);
    }
  } finally {
    progress.stop();
  }
}

async function runVoucher(
  text: string,
  options: Options & { readonly out: string; readonly again?: boolean },
): Promise<void> {
  const replaced = BigInt(parseAs(SerialNumber, text, 'the serial'));
  const { out: file, again = false, force = false } = options;
  if (file === '-') wrongUsage('--out needs a file: the code and PIN are not written to stdout');
  const design = designOf(options);
  const { format } = design;
  if (again && actor().reason === null) wrongUsage('--again needs --reason');
  await withOperator(async (operator) => {
    const { service } = operator;
    await requireApproval(operator, 'voucher export');
    const { serialNumber, batch, product } = await findReplacement(service, replaced);
    await checkTarget(file, force);
    const printed = await describeCards(service, batch, product);
    const write = await prepareWriter(printed, service.clock(), design);
    const wanted = { replaced, serialNumber, format, exportsBefore: again ? null : 0 };
    const made = await exportReplacement(operator, batch, wanted, (vouchers, count) =>
      writeWhole(file, write(vouchers, count), force),
    );
    if (!made) fail(`voucher ${serialNumber} was exported before: --again and --reason export it once more`);
    const { name: by, reason } = operator.actor;
    const shown = { exportId: String(made.id), serialNumber: String(serialNumber), format, file, by, reason };
    if (options.json) printJson(shown);
    else say(`voucher ${serialNumber} written to ${file}; recorded as export ${made.id} by ${by}`);
  });
}
