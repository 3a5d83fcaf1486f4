import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Static } from 'typebox';
import { type Batch, findBatchOf } from '../batches/batch.ts';
import { batches, type OrderedBatch } from '../batches/batches.ts';
import { BATCH_JOBS } from '../batches/fill.ts';
import { newReference } from '../batches/generate.ts';
import type { Service } from '../context.ts';
import { isUnavailable } from '../db/errors.ts';
import { startJobs } from '../jobs/queue.ts';
import { tableOf } from '../operation.ts';
import { addOperations, printOne } from './commands.ts';
import { addExport } from './export.ts';
import { untilStopped } from './open.ts';
import { explainOutcome, fail, interrupted, notFound, printJson } from './output.ts';
import { performWith } from './perform.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './signals.ts';

const POLL_MS = 200;
/** A batch that has not grown for this long has no worker. This process then produces it. */
const IDLE_MS = 1_500;

const WAIT = ['--wait', 'wait until the batch is complete'] as const;

/** Adds the commands that wait, and those that write codes into files. */
export function addOrders(batch: Command): void {
  const { generate } = batches;
  addOperations(batch.command('generate'), tableOf(generate), (input, given) => run(input as never, given), [
    WAIT,
  ]);
  addExport(batch);
}

/** Orders a batch under a reference that is known even if the answer is lost. */
async function run(
  given: Static<typeof batches.generate.input>,
  { wait, json }: { readonly wait?: boolean; readonly json?: boolean },
): Promise<void> {
  const input = { reference: newReference(), ...given };
  await untilStopped(async (service, _config, stop) => {
    const ordered = await performWith(service, batches.generate, input).catch((error: unknown) =>
      explainOutcome(error, `repeat the order with --reference ${input.reference}, which orders once`),
    );
    const ended = wait ? await waitFor(service, ordered, stop, json) : undefined;
    const made = ended
      ? { ...ordered, status: ended.status, produced: ended.produced, percent: ended.percent }
      : ordered;
    if (json) printJson(made);
    else printOne(batches.generate.output as never, made);
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
  const progress = showProgress('vouchers', quiet);
  let worker: ReturnType<typeof startJobs> | undefined;
  let produced = accepted.produced;
  let grewAtMs = performance.now();
  try {
    for (;;) {
      const batch = (await findBatchOf(service.db, transactionId)) ?? notFound(named);
      progress.update(batch.produced, quantity);
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
