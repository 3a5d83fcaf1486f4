import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Service } from '../context.ts';
import { bulk, bulkCancel, preview } from '../operator/bulk.ts';
import { JOB_RUNS, jobs } from '../operator/job-operations.ts';
import type { Job } from '../operator/job-schema.ts';
import { runJob } from '../operator/jobs.ts';
import { untilStopped } from './open.ts';
import { interrupted, numberOf, printJson, say, wrongUsage } from './output.ts';
import { oneOf, parseEnd, parseSerial, parseTransactionId } from './parse.ts';
import { performCommand, performWith } from './perform.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './stop.ts';

const POLL_MS = 250;
const ACTIONS = ['block', 'unblock', 'extend', 'cancel'] as const;

type BulkOptions = { json?: boolean; serials?: string; batch?: string; expiry?: string; preview?: boolean };

/** Adds `bulk` to the commands for vouchers. */
export function addBulk(voucher: Command): void {
  voucher
    .command('bulk <action>')
    .description(`${ACTIONS.join(', ')} many vouchers: those of a file, or of a batch`)
    .option('--serials <file>', 'a file with a serial number in each line, or - for standard input')
    .option('--batch <id>', 'the transaction id of a batch')
    .option('--expiry <date>', 'with extend: their last day (UTC), or a date and time')
    .option('--preview', 'only show what would be done')
    .option('--json', 'print JSON')
    .action(runBulk);
}

function readSerials(file: string): string[] {
  const lines = readFileSync(file === '-' ? 0 : file, 'utf8').split(/\r?\n/);
  const serials = lines.map((line) => line.trim()).filter(Boolean);
  return [...new Set(serials.map((each) => String(parseSerial(each))))];
}

async function runBulk(text: string, options: BulkOptions): Promise<void> {
  const { serials, batch, expiry } = options;
  const action = oneOf(text, 'bulk', ACTIONS);
  if ((serials === undefined) === (batch === undefined)) wrongUsage('give either --serials or --batch');
  if ((action === 'extend') !== (expiry !== undefined)) wrongUsage('--expiry belongs to extend');
  if (expiry !== undefined) parseEnd(expiry, '--expiry');
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

/** Runs a job in this process, unless another one already does, and shows how far it is. */
async function follow(service: Service, { id, total }: Job, stop: Stop, quiet = false): Promise<Job> {
  const stopping = new AbortController();
  void stop.asked.then(() => stopping.abort());
  const running = runJob(service, JOB_RUNS, Number(id), stopping.signal);
  const progress = showProgress(total, 'vouchers', quiet);
  try {
    for (;;) {
      const job = await performWith(service, jobs.show, { id });
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
