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
import { actFor } from '../merchants/impersonate.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { findProduct, type Product } from '../merchants/products.ts';
import { toNumber, toText } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { actor } from './actor.ts';
import { explainOutcome, untilStopped } from './open.ts';
import { fail, id, interrupted, notFound, numberOf, printFields, printJson } from './output.ts';
import { parseCount, parseEnd, parseId, parseText, parseValue } from './parse.ts';
import { valueText } from './product.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './stop.ts';

const QUANTITY_MAX = 5_000_000;
const REFERENCE_MAX = 100;
const POLL_MS = 200;
/** A batch that has not grown for this long has no worker: then this process produces it. */
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

/** Adds `generate` to the commands for batches. */
export function addGenerate(batch: Command): void {
  batch
    .command('generate')
    .description('order a batch for a merchant, by its permissions and from its float; shows no codes')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--quantity <count>', 'how many vouchers')
    .option('--product <code>', "the product (default: the merchant's)")
    .option('--value <value>', 'the value of each voucher, in major units (default: given at activation)')
    .option(
      '--expiry <date>',
      "the last day of the vouchers (UTC), or a date and time (default: the product's validity)",
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
  const merchantId = parseId(options.merchant);
  const { reference } = options;
  const request = {
    reference: reference === undefined ? newReference() : parseText(reference, '--reference', REFERENCE_MAX),
    quantity: parseCount(options.quantity, '--quantity', 1, QUANTITY_MAX),
    productCode: options.product,
    value: options.value === undefined ? undefined : parseValue(options.value, '--value'),
    expiryDate: options.expiry === undefined ? undefined : parseEnd(options.expiry, '--expiry'),
  };
  await untilStopped(async (service, _config, stop) => {
    const accepted = await order(service, merchantId, request);
    const batch = options.wait ? await waitFor(service, accepted.batch, stop, options.json) : accepted.batch;
    const made = {
      transactionId: batch.transactionId,
      merchantId: id(batch.merchantId),
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
    if (options.json) return printJson(made);
    printFields({ ...made, value: batch.value && toText(batch.value), percent: `${made.percent} %` });
  });
}

type Request = Parameters<typeof generate>[1];

async function order(service: Service, merchantId: number, request: Request) {
  try {
    const context = (await actFor(service, merchantId)) ?? notFound(`merchant ${merchantId}`);
    return await generate(context, request, { service, actor: actor() });
  } catch (error) {
    if (error instanceof Refusal)
      return fail(await reasonFor(error, service, merchantId, request), error.code);
    return explainOutcome(error, `repeat the order with --reference ${request.reference}, which orders once`);
  }
}

/** Unique without being looked up: an order is never sent without a reference. */
function newReference(): string {
  return `operator-${new Date().toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`;
}

const REASONS: Partial<Record<RefusalCode, string>> = {
  '03': 'the merchant may not generate; `scrip merchant permit ID generate` allows it',
  '04': '`scrip merchant resume ID` ends the suspension',
  '13': 'a value is above zero and has no more decimals than the currency',
  '15': 'the product is unknown, off sale, or belongs to another merchant',
  '17': 'it must be at least one day from now',
  '18': 'a reference has 1 to 100 characters, no control characters, and does not begin with CANCEL- or NEW-',
  '50': 'the float is less than quantity × value; `scrip float show` shows it',
  '94': 'the merchant has used it for another order',
};

/** A refusal of an order, with what the operator can do about it. */
async function reasonFor(
  { code, message }: Refusal,
  { db }: Service,
  merchantId: number,
  { productCode }: Request,
): Promise<string> {
  let reason = REASONS[code];
  if (code === '16' || code === '61') {
    const named = productCode ?? (await findMerchant(db, merchantId))?.product;
    const product = named === undefined ? undefined : await findProduct(db, named);
    if (product) reason = boundsOf(product)[code];
  }
  return `${message} (${code})${reason === undefined ? '' : `: ${reason}`}`;
}

function boundsOf(product: Product) {
  const { code, currency, maxQuantity, minValueMinor, maxValueMinor } = product;
  const values = `${valueText(product, minValueMinor)} to ${valueText(product, maxValueMinor)} ${currency}`;
  return {
    '16': `a batch of ${code} has up to ${numberOf(maxQuantity, 'voucher')}`,
    '61': `vouchers of ${code} have values from ${values}`,
  };
}

/**
 * Waits until a batch ends. Where nobody produces it (no `serve` and no `work` on this database), this process does.
 * @throws CommandError where the batch is canceled, or the wait is interrupted
 */
async function waitFor(service: Service, accepted: Batch, stop: Stop, quiet = false): Promise<Batch> {
  const { transactionId, reference, quantity } = accepted;
  const named = `batch ${transactionId} (reference ${reference})`;
  const progress = showProgress(quantity, 'vouchers', quiet);
  let worker: Worker | undefined;
  let produced = accepted.produced;
  let grewAtMs = performance.now();
  try {
    for (;;) {
      const { batch, failure } = (await findProgress(service.db, transactionId)) ?? notFound(named);
      progress.update(batch.produced);
      if (batch.status === 'COMPLETED') return batch;
      if (batch.status === 'CANCELED')
        fail(`${named} was canceled: ${failure ?? 'by its merchant or an operator'}`);
      if (stop.isAsked()) {
        interrupted(
          `interrupted: ${named} is accepted and at ${percentOf(batch)} %; \`scrip serve\` or \`scrip work\` ` +
            'continues it, and `scrip batch show` shows how far it is',
        );
      }
      if (batch.produced !== produced) grewAtMs = performance.now();
      else if (!worker && performance.now() - grewAtMs > IDLE_MS)
        worker = await startWorker(service, TASKS, sweep);
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
