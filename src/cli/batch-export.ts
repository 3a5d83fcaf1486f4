import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { Batch } from '../batches/batch.ts';
import { exportBatch, listExports } from '../batches/export.ts';
import { findBatchForOperator, findProgress } from '../batches/list.ts';
import type { PrintedBatch, PrintedVoucher } from '../batches/print/voucher.ts';
import type { Service } from '../context.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { findProduct } from '../merchants/products.ts';
import { actor } from './actor.ts';
import { checkTarget, writeWhole } from './file.ts';
import { untilStopped, withService } from './open.ts';
import { fail, printJson, printTable } from './output.ts';
import { oneOf, parseTransactionId } from './parse.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './stop.ts';

/** Of a reference in a file name. */
const MOST_NAME = 80;

type Options = {
  format: string;
  out?: string;
  font?: string;
  force?: boolean;
  json?: boolean;
};

/** Adds `export` and `exports` to the commands for batches. */
export function addExport(batch: Command): void {
  batch
    .command('export <transactionId>')
    .description('write the codes and PINs of a completed batch for print; who does it is recorded')
    .requiredOption('--format <format>', 'csv, or pdf: a sheet of cards')
    .option(
      '--out <file>',
      'where to, or - for stdout (default: csv to a stdout that is no terminal, else a file named after the reference)',
    )
    .option('--force', 'overwrite the file')
    .option('--font <file>', 'a TrueType or OpenType font for names, where those that come along lack the letters')
    .option('--json', 'print JSON; the export then goes into a file')
    .action(run);
  batch
    .command('exports <transactionId>')
    .description('who exported the codes of a batch, and when, newest first')
    .option('--json', 'print JSON')
    .action(list);
}

async function run(id: string, options: Options): Promise<void> {
  const transactionId = parseTransactionId(id);
  const format = oneOf(options.format, '--format', ['csv', 'pdf'] as const);
  if (options.json && options.out === '-') fail('--json and --out - both want stdout');
  await untilStopped(async (service, _config, stop) => {
    const operator = { service, actor: actor() };
    const { batch, names } = await findExportable(service, transactionId);
    const toStdout =
      options.out === '-' || (!options.out && format === 'csv' && !options.json && !process.stdout.isTTY);
    if (toStdout && format === 'pdf' && process.stdout.isTTY)
      fail('a PDF document is nothing for a terminal: --out FILE');
    const file = toStdout ? null : (options.out ?? `${fileName(batch.reference, transactionId)}.${format}`);
    if (file !== null) await checkTarget(file, options.force ?? false);
    const write = await prepareWriter(format, names, service.clock(), options.font);
    const made = await exportBatch(operator, batch, format, async (vouchers, count) => {
      const pieces = write(watch(vouchers, count, stop, options.json), count);
      if (file === null) await writeToStdout(pieces);
      else await writeWhole(file, pieces, options.force ?? false);
    });
    const { name: by, reason } = operator.actor;
    const told = { exportId: made.id, transactionId, format, file, vouchers: made.vouchers, by, reason };
    if (options.json) return printJson(told);
    const line = `${made.vouchers} vouchers written to ${file ?? 'stdout'}; recorded as export ${made.id} by ${by}\n`;
    if (file === null) process.stderr.write(process.stderr.isTTY ? line : '');
    else process.stdout.write(line);
  });
}

async function writeToStdout(pieces: AsyncIterable<string | Buffer>): Promise<void> {
  await pipeline(pieces, process.stdout, { end: false }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') fail('stdout was closed before the end: the export is recorded as aborted');
    throw error;
  });
}

type Writer = (vouchers: AsyncIterable<PrintedVoucher[]>, count: number) => AsyncIterable<string | Buffer>;

/** What writes the format. Loaded when it is asked for: no other command waits for it. */
async function prepareWriter(format: 'csv' | 'pdf', names: PrintedBatch, now: Date, font?: string): Promise<Writer> {
  if (format === 'csv') {
    const { writeCsv } = await import('../batches/print/csv.ts');
    return (vouchers) => writeCsv(names, vouchers);
  }
  const { openNameFont, printableNames } = await import('../batches/print/names.ts');
  if (font !== undefined && !openNameFont(font)) fail(`${font} is no TrueType or OpenType font`);
  for (const name of printableNames(names, font).replaced) {
    process.stderr.write(
      `scrip: the font has no letters for "${name}", so an identifier stands in its place; see --font\n`,
    );
  }
  const { writeSheet } = await import('../batches/print/sheet.ts');
  return (vouchers, count) => writeSheet(names, vouchers, { count, printedAt: now, nameFont: font });
}

async function findExportable(service: Service, transactionId: string): Promise<{ batch: Batch; names: PrintedBatch }> {
  const { batch, details } =
    (await findBatchForOperator(service, transactionId)) ?? fail(`there is no batch ${transactionId}`);
  if (batch.status === 'PROCESSING')
    fail(`batch ${transactionId} is PROCESSING: it can be exported once it is COMPLETED`);
  if (batch.status === 'CANCELED') fail(`batch ${transactionId} is CANCELED: none of its vouchers can be used`);
  if (details.open === 0) fail(`batch ${transactionId} has no vouchers left`);
  const [merchant, product] = await Promise.all([
    findMerchant(service.db, batch.merchantId),
    findProduct(service.db, details.product),
  ]);
  const names = {
    merchant: merchant?.name ?? '',
    merchantId: batch.merchantId,
    product: product?.name ?? '',
    productCode: details.product,
    reference: batch.reference,
    transactionId,
  };
  return { batch, names };
}

/** Hands pages on, shows how far they are, and ends them where the command is asked to stop. */
async function* watch(vouchers: AsyncIterable<PrintedVoucher[]>, count: number, stop: Stop, quiet = false) {
  const progress = showProgress(count, 'vouchers', quiet);
  let done = 0;
  try {
    for await (const page of vouchers) {
      if (stop.isAsked()) fail('interrupted: the export is recorded as aborted');
      yield page;
      done += page.length;
      progress.update(done);
    }
  } finally {
    progress.stop();
  }
}

async function list(id: string, options: { json?: boolean }): Promise<void> {
  const transactionId = parseTransactionId(id);
  await withService(async ({ db }) => {
    const { batch } = (await findProgress(db, transactionId)) ?? fail(`there is no batch ${id}`);
    const exports = await listExports(db, batch.id);
    if (options.json) return printJson(exports);
    printTable(
      ['export', 'begun', 'by', 'format', 'vouchers', 'state', 'reason'],
      exports.map((each) => [
        String(each.id),
        each.begunAt.toISOString(),
        each.by,
        each.format,
        String(each.vouchers),
        each.state,
        each.reason ?? '',
      ]),
    );
  });
}

/** A merchant's reference as a file name: nothing in it leads into another folder, or hides the file. */
function fileName(reference: string, transactionId: string): string {
  const safe = reference
    .replace(/[^\p{L}\p{N}._-]+/gu, '-')
    .replace(/^[.-]+|[.-]+$/g, '')
    .slice(0, MOST_NAME);
  return `vouchers-${safe === '' ? transactionId : safe}`;
}
