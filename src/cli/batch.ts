import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Batch, findBatchOf } from '../batches/batch.ts';
import { batches, type OrderedBatch } from '../batches/batches.ts';
import { newReference } from '../batches/generate.ts';
import { BATCH_JOBS } from '../batches/tasks.ts';
import type { Service } from '../context.ts';
import { isUnavailable } from '../db/errors.ts';
import { startJobs } from '../jobs/queue.ts';
import { QUANTITY_MAX } from '../products/products.ts';
import { addExport } from './batch-export.ts';
import { untilStopped } from './open.ts';
import { amountText, explainOutcome, fail, interrupted, notFound, printFields, printJson } from './output.ts';
import { checkDate, parseCount, parseId, parseProduct, parseText, parseValue } from './parse.ts';
import { performWith } from './perform.ts';
import type { Stop } from './processes.ts';
import { showProgress } from './progress.ts';

const REFERENCE_MAX = 100;
const POLL_MS = 200;
/** A batch that has not grown for this long has no worker. This process then produces it. */
const IDLE_MS = 1_500;

type Options = {
  merchant: string;
  quantity: string;
  product?: string;
  value?: string;
  expiry?: string;
  reference?: string;
  wait?: boolean;
  json?: boolean;
};

function addGenerate(batch: Command): void {
  batch
    .command('generate')
    .description('order a batch for a merchant, with its permissions and from its float; shows no codes')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--quantity <count>', 'how many vouchers')
    .option('--product <code>', "the product (default: the merchant's)")
    .option('--value <value>', 'the value of each voucher, in major units (default: given at activation)')
    .option(
      '--expiry <date>',
      "the last day of the vouchers, or a date and time (default: the product's validity)",
    )
    .option(
      '--reference <reference>',
      "the merchant's reference: a repetition is the same order (default: a new one)",
    )
    .option('--wait', 'wait until the batch is complete')
    .option('--json', 'print JSON')
    .action(run);
}

async function run(options: Options): Promise<void> {
  const { product, value, expiry } = options;
  if (expiry !== undefined) checkDate(expiry, '--expiry');
  const input = {
    merchantId: String(parseId(options.merchant)),
    reference:
      options.reference === undefined
        ? newReference()
        : parseText(options.reference, '--reference', REFERENCE_MAX),
    quantity: parseCount(options.quantity, '--quantity', 1, QUANTITY_MAX),
    ...(product !== undefined && { product: parseProduct(product) }),
    ...(value !== undefined && { value: parseValue(value, '--value') }),
    ...(expiry !== undefined && { expiryDate: expiry }),
  };
  await untilStopped(async (service, _config, stop) => {
    const ordered = await performWith(service, batches.generate, input).catch((error: unknown) =>
      explainOutcome(error, `repeat the order with --reference ${input.reference}, which orders once`),
    );
    const ended = options.wait ? await waitFor(service, ordered, stop, options.json) : undefined;
    const made = ended
      ? { ...ordered, status: ended.status, produced: ended.produced, percent: ended.percent }
      : ordered;
    if (options.json) return printJson(made);
    const text = made.value === null ? null : amountText(Number(made.value), made.currency);
    printFields({ ...made, value: text, percent: `${made.percent} %` });
  });
}

/**
 * Waits until a batch ends. If neither `serve` nor `work` uses this database, this process produces the
 * batch.
 * @throws CommandError if the batch is canceled, or the wait is interrupted
 */
async function waitFor(service: Service, accepted: OrderedBatch, stop: Stop, quiet = false): Promise<Batch> {
  const { transactionId, reference, quantity } = accepted;
  const named = `batch ${transactionId} (reference ${reference})`;
  const progress = showProgress(quantity, 'vouchers', quiet);
  let worker: ReturnType<typeof startJobs> | undefined;
  let produced = accepted.produced;
  let grewAtMs = performance.now();
  try {
    for (;;) {
      const batch = (await findBatchOf(service.db, transactionId)) ?? notFound(named);
      progress.update(batch.produced);
      if (batch.status === 'COMPLETED') return batch;
      if (batch.status === 'CANCELED')
        fail(`${named} was canceled: ${batch.failure ?? 'by its merchant or an operator'}`);
      if (stop.isAsked()) {
        interrupted(
          `interrupted: ${named} is accepted and at ${batch.percent} %; \`scrip serve\` or \`scrip work\` ` +
            'continues it, and `scrip batch show` shows how far it is',
        );
      }
      if (batch.produced !== produced) grewAtMs = performance.now();
      else if (!worker && performance.now() - grewAtMs > IDLE_MS) worker = startJobs(service, [BATCH_JOBS]);
      produced = batch.produced;
      await Promise.race([sleep(POLL_MS), stop.asked]);
    }
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return fail(
      `the connection to the database was lost; ${named} is accepted, and continues when it is back`,
    );
  } finally {
    progress.stop();
    await worker?.stop();
  }
}

/** Adds the commands that wait, and those that write codes into files. */
export function addOrders(batch: Command): void {
  addGenerate(batch);
  addExport(batch);
}
