import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Batch } from '../batches/batch.ts';
import { generate } from '../batches/generate.ts';
import { findProgress, percentOf } from '../batches/list.ts';
import { sweep, TASKS } from '../batches/tasks.ts';
import type { Service } from '../context.ts';
import { isUnavailable } from '../db/errors.ts';
import { startWorker, type Worker } from '../jobs/worker.ts';
import { actFor } from '../merchants/act-for.ts';
import { toNumber, toText } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { actor } from './actor.ts';
import { untilStopped } from './open.ts';
import { fail, printFields, printJson } from './output.ts';
import { parseCount, parseExpiry, parseId, parseValue } from './parse.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './stop.ts';

const MOST_QUANTITY = 5_000_000;
/** Between two looks at a batch that is waited for. */
const LOOK_MS = 200;
/** A batch that has not moved for this long has nobody who works on it: then this process does. */
const QUIET_MS = 1_500;

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

/** Adds `generate` to the commands for batches. */
export function addGenerate(batch: Command): void {
  batch
    .command('generate')
    .description(
      'order a batch on behalf of a merchant: its permissions hold, and its float is debited; shows no codes',
    )
    .requiredOption('--merchant <id>', 'who orders')
    .requiredOption('--quantity <count>', 'how many vouchers')
    .option('--product <code>', "of which product (default: the merchant's)")
    .option('--value <value>', 'of each voucher, in major units (default: given at activation)')
    .option(
      '--expiry <date>',
      "a day, of which they are valid to the end (UTC), or a date and time (default: the product's)",
    )
    .option(
      '--reference <reference>',
      "the merchant's reference, under which a repetition is the same order (default: made)",
    )
    .option('--wait', 'until the batch is complete')
    .option('--json', 'print JSON')
    .action(run);
}

async function run(options: Options): Promise<void> {
  const merchantId = parseId(options.merchant);
  const request = {
    reference: options.reference ?? newReference(),
    quantity: parseCount(options.quantity, '--quantity', 1, MOST_QUANTITY),
    productCode: options.product,
    value: options.value === undefined ? undefined : parseValue(options.value, '--value'),
    expiryDate: options.expiry === undefined ? undefined : parseExpiry(options.expiry),
  };
  await untilStopped(async (service, _config, stop) => {
    const accepted = await order(service, merchantId, request).catch(explain);
    const batch = options.wait ? await waitFor(service, accepted.batch, stop, options.json) : accepted.batch;
    const told = {
      transactionId: batch.transactionId,
      merchantId: String(batch.merchantId),
      reference: batch.reference,
      status: batch.status,
      quantity: batch.quantity,
      produced: batch.produced,
      percent: percentOf(batch),
      value: batch.value && toNumber(batch.value),
      currency: batch.currency,
      expiryDate: batch.expiresAt,
      replayed: accepted.replayed,
    };
    if (options.json) return printJson(told);
    printFields({ ...told, value: batch.value && toText(batch.value), percent: `${told.percent} %` });
  });
}

async function order(service: Service, merchantId: number, request: Parameters<typeof generate>[1]) {
  const context = (await actFor(service, merchantId)) ?? fail(`there is no merchant ${merchantId}`);
  return generate(context, request, { service, actor: actor() });
}

/** Told before the codes of a batch are written anywhere, so it has to be unique without being looked up. */
function newReference(): string {
  return `operator-${new Date().toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`;
}

/** What the operator can do about each refusal of an order. */
const REASONS: Partial<Record<RefusalCode, string>> = {
  '03': 'the merchant may not generate; `scrip merchant permit ID generate` allows it',
  '04': '`scrip merchant resume ID` lets it go on',
  '13': 'the value is above zero and has at most the decimals of the currency',
  '15': "unknown, off sale, or another merchant's",
  '16': "more than the product's greatest quantity",
  '17': 'it is at least a day from now',
  '18': 'it has 1 to 100 characters, no control characters, and does not begin with CANCEL- or NEW-',
  '50': 'the float does not hold quantity × value; `scrip float show` tells what it holds',
  '61': "the value is outside the product's",
  '94': 'the merchant has ordered something else under it',
};

function explain(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  const reason = REASONS[error.code];
  return fail(`${error.message} (${error.code})${reason === undefined ? '' : `: ${reason}`}`);
}

/**
 * Waits until a batch ends. Where nobody produces it (no `serve`, no `work` on this database), this process does.
 * @throws CommandError where it is canceled, or the wait is
 */
async function waitFor(service: Service, accepted: Batch, stop: Stop, quiet = false): Promise<Batch> {
  const { transactionId, reference, quantity } = accepted;
  const named = `batch ${transactionId} (reference ${reference})`;
  const progress = showProgress(quantity, 'vouchers', quiet);
  let worker: Worker | undefined;
  let produced = accepted.produced;
  let movedAtMs = performance.now();
  try {
    for (;;) {
      const { batch, failure } = (await findProgress(service.db, transactionId)) ?? fail(`${named} has gone`);
      progress.update(batch.produced);
      if (batch.status === 'COMPLETED') return batch;
      if (batch.status === 'CANCELED') fail(`${named} was canceled: ${failure ?? 'by its merchant or an operator'}`);
      if (stop.isAsked()) {
        fail(
          `interrupted: ${named} stands at ${percentOf(batch)} %, and goes on while \`scrip serve\` or \`scrip work\` runs; \`scrip batch show\` tells how far it is`,
        );
      }
      if (batch.produced !== produced) movedAtMs = performance.now();
      else if (!worker && performance.now() - movedAtMs > QUIET_MS) worker = await startWorker(service, TASKS, sweep);
      produced = batch.produced;
      await Promise.race([sleep(LOOK_MS), stop.asked]);
    }
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return fail(`the database cannot be reached any more; ${named} is accepted, and goes on when it is back`);
  } finally {
    progress.stop();
    await worker?.stop();
  }
}
