import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { exportReplacement } from '../batches/export.ts';
import { findReplacement } from '../batches/printable.ts';
import { describeCards } from '../batches/sheets.ts';
import type { Service } from '../context.ts';
import { groupOf, type Job, showJob } from '../jobs/jobs.ts';
import { runJob } from '../jobs/queue.ts';
import { JOB_RUNS } from '../operations/background.ts';
import { bulk, bulkCancel, preview } from '../vouchers/bulk.ts';
import { cardDesign, LANGUAGE_HELP, prepareWriter } from './batch-export.ts';
import { checkTarget, writeWhole } from './file.ts';
import { untilStopped, withOperator } from './open.ts';
import { fail, id, interrupted, numberOf, printJson, say, wrongUsage } from './output.ts';
import { checkDate, oneOf, parseSerial, parseTransactionId } from './parse.ts';
import { performCommand, performWith, requireApproval } from './perform.ts';
import type { Stop } from './processes.ts';
import { showProgress } from './progress.ts';
import { actor } from './usage.ts';

const POLL_MS = 250;
const ACTIONS = ['block', 'unblock', 'extend', 'cancel'] as const;

type BulkOptions = { json?: boolean; serials?: string; batch?: string; expiry?: string; preview?: boolean };

/** Adds the commands that read a file of vouchers, and that write a code into a file. */
export function addFiles(voucher: Command): void {
  addBulk(voucher);
  addVoucherExport(voucher);
}

function addBulk(voucher: Command): void {
  voucher
    .command('bulk <action>')
    .description(`${ACTIONS.join(', ')} many vouchers: those of a file, or of a batch`)
    .option('--serials <file>', 'a file with a serial number in each line, or - for standard input')
    .option('--batch <id>', 'the transaction id of a batch')
    .option('--expiry <date>', 'with extend: their last day, or a date and time')
    .option('--preview', 'only show what would be done')
    .option('--json', 'print JSON')
    .action(runBulk);
}

/** Reads the serial numbers in the lines of a file, or of standard input (`-`). */
export function readSerials(file: string): string[] {
  const lines = readFileSync(file === '-' ? 0 : file, 'utf8').split(/\r?\n/);
  const serials = lines.map((line) => line.trim()).filter(Boolean);
  return [...new Set(serials.map((each) => String(parseSerial(each))))];
}

async function runBulk(text: string, options: BulkOptions): Promise<void> {
  const { serials, batch, expiry } = options;
  const action = oneOf(text, 'bulk', ACTIONS);
  if ((serials === undefined) === (batch === undefined)) wrongUsage('give either --serials or --batch');
  if ((action === 'extend') !== (expiry !== undefined)) wrongUsage('--expiry belongs to extend');
  if (expiry !== undefined) checkDate(expiry, '--expiry');
  const named = {
    ...(serials !== undefined && { serialNumbers: readSerials(serials) }),
    ...(batch !== undefined && { batch: parseTransactionId(batch) }),
  };
  if (options.preview) {
    const input = { action, ...named, ...(expiry !== undefined && { expiry }) };
    await performCommand(preview, input, options, ({ changes, declined }) =>
      say(`${numberOf(changes, 'voucher')} would be changed, ${declined} declined`),
    );
    return;
  }
  await untilStopped(async (service, _config, stop) => {
    const started =
      action === 'cancel'
        ? await performWith(service, bulkCancel, named)
        : await performWith(service, bulk, { action, ...named, ...(expiry !== undefined && { expiry }) });
    const { id } = started;
    const job = await follow(service, started, stop, options.json);
    const changed = job.done - job.failed;
    if (changed < job.total) process.exitCode = 1;
    if (options.json) return printJson(job);
    const left = job.total - job.done;
    say(
      `${numberOf(changed, 'voucher')} changed, ${job.failed} declined${left ? `, ${left} not done` : ''}: ` +
        `\`scrip job rows ${id}\``,
    );
  });
}

/** Runs a job in this process, unless another process does, and shows its progress. */
async function follow(service: Service, { id, total }: Job, stop: Stop, quiet = false): Promise<Job> {
  const running = runJob(service, [groupOf(JOB_RUNS)], Number(id), stop.isAsked);
  const progress = showProgress(total, 'vouchers', quiet);
  try {
    for (;;) {
      const job = await performWith(service, showJob, { id });
      progress.update(job.done);
      if (job.state === 'COMPLETED' || job.state === 'CANCELED' || job.state === 'FAILED') return job;
      if (stop.isAsked()) interrupted(`interrupted: job ${id} goes on in \`scrip serve\` or \`scrip work\``);
      await Promise.race([sleep(POLL_MS), stop.asked]);
    }
  } finally {
    progress.stop();
    await running;
  }
}

type Options = {
  format: string;
  out: string;
  again?: boolean;
  font?: string;
  language?: string;
  force?: boolean;
  json?: boolean;
};

function addVoucherExport(voucher: Command): void {
  voucher
    .command('export <serial>')
    .description('write the code and PIN of the voucher that replaced this one into a file, once')
    .requiredOption('--format <format>', 'csv, or pdf: a sheet with one card')
    .requiredOption('--out <file>', 'the file')
    .option('--again', 'export again; needs --reason')
    .option('--force', 'overwrite the file')
    .option(
      '--font <file>',
      'pdf: a TrueType or OpenType font for names with letters that the built-in fonts lack',
    )
    .option('--language <language>', LANGUAGE_HELP)
    .option('--json', 'print JSON')
    .action(run);
}

async function run(text: string, options: Options): Promise<void> {
  const replaced = parseSerial(text);
  const format = oneOf(options.format, '--format', ['csv', 'pdf'] as const);
  const { out: file, again = false, force = false } = options;
  if (file === '-') wrongUsage('--out needs a file: the code and PIN are not written to stdout');
  const design = cardDesign(options, format);
  if (again && actor().reason === null) wrongUsage('--again needs --reason');
  await withOperator(async (operator) => {
    const { service } = operator;
    await requireApproval(operator, 'voucher export');
    const { serialNumber, batch, product } = await findReplacement(service, replaced);
    await checkTarget(file, force);
    const printed = await describeCards(service, batch, product);
    const write = await prepareWriter(format, printed, service.clock(), design);
    const wanted = { replaced, serialNumber, format, exportsBefore: again ? null : 0 };
    const made = await exportReplacement(operator, batch, wanted, (vouchers, count) =>
      writeWhole(file, write(vouchers, count), force),
    );
    if (!made) fail(`voucher ${serialNumber} was exported before: --again and --reason export it once more`);
    const { name: by, reason } = operator.actor;
    const shown = { exportId: id(made.id), serialNumber: id(serialNumber), format, file, by, reason };
    if (options.json) printJson(shown);
    else say(`voucher ${serialNumber} written to ${file}; recorded as export ${made.id} by ${by}`);
  });
}
