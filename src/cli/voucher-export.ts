import type { Command } from 'commander';
import { describeCards, toCard } from '../batches/cards.ts';
import { exportReplacement, type PrintedVoucher } from '../batches/export.ts';
import { findProgress } from '../batches/list.ts';
import type { Service } from '../context.ts';
import { showVoucher } from '../vouchers/operate.ts';
import { actor } from './actor.ts';
import { prepareWriter } from './batch-export.ts';
import { checkTarget, writeWhole } from './file.ts';
import { withOperator } from './open.ts';
import { fail, id, notFound, printJson, say, wrongUsage } from './output.ts';
import { oneOf, parseSerial } from './parse.ts';
import { requireApproval } from './perform.ts';

type Options = {
  format: string;
  out: string;
  again?: boolean;
  font?: string;
  force?: boolean;
  json?: boolean;
};

/** Adds `export` to the commands for single vouchers. */
export function addVoucherExport(voucher: Command): void {
  voucher
    .command('export <serial>')
    .description('write the code and PIN of the voucher that replaced this one into a file, once')
    .requiredOption('--format <format>', 'csv, or pdf: a sheet with one card')
    .requiredOption('--out <file>', 'the file')
    .option('--again', 'also if it was exported before; needs --reason')
    .option('--force', 'overwrite the file')
    .option(
      '--font <file>',
      'pdf: a TrueType or OpenType font for names, where the built-in fonts lack their letters',
    )
    .option('--json', 'print JSON')
    .action(run);
}

async function run(text: string, options: Options): Promise<void> {
  const replaced = parseSerial(text);
  const format = oneOf(options.format, '--format', ['csv', 'pdf'] as const);
  const { out: file, again = false, force = false, font } = options;
  if (file === '-') wrongUsage('--out needs a file: the code and PIN are not written to stdout');
  if (font !== undefined && format !== 'pdf') wrongUsage('--font needs --format pdf');
  if (again && actor().reason === null) wrongUsage('--again needs --reason');
  await withOperator(async (operator) => {
    const { service } = operator;
    await requireApproval(operator, 'voucher.export');
    const { serialNumber, batch, product } = await findReplacement(service, replaced);
    await checkTarget(file, force);
    const printed = await describeCards(service, batch, product);
    const write = await prepareWriter(format, printed, service.clock(), font);
    const wanted = { replaced, serialNumber, format, again };
    const made = await exportReplacement(operator, batch, wanted, (vouchers, count) =>
      writeWhole(file, write(toCards(vouchers), count), force),
    );
    if (!made) fail(`voucher ${serialNumber} was exported before: --again and --reason export it once more`);
    const { name: by, reason } = operator.actor;
    const shown = { exportId: id(made.id), serialNumber: id(serialNumber), format, file, by, reason };
    if (options.json) printJson(shown);
    else say(`voucher ${serialNumber} written to ${file}; recorded as export ${made.id} by ${by}`);
  });
}

/** The voucher that replaced one, with its batch. */
async function findReplacement(service: Service, replaced: bigint) {
  const { replacedBy, batch: transactionId, product } = await showVoucher(service, replaced);
  if (replacedBy === null)
    fail(`voucher ${replaced} was not replaced: name the voucher that was given to scrip voucher replace`);
  const later = await showVoucher(service, replacedBy);
  if (later.replacedBy !== null)
    fail(`voucher ${replacedBy}, which replaced it, was replaced too: export that of ${replacedBy}`);
  const found = (await findProgress(service.db, transactionId)) ?? notFound(`batch ${transactionId}`);
  return { serialNumber: replacedBy, batch: found.batch, product };
}

async function* toCards(pages: AsyncIterable<PrintedVoucher[]>) {
  for await (const page of pages) yield page.map(toCard);
}
