import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Service } from '../context.ts';
import { groupOf, type Job, showJob } from '../jobs/jobs.ts';
import { runJob } from '../jobs/queue.ts';
import { type AnyOperation, tableOf } from '../operation.ts';
import { JOB_RUNS } from '../operations/background.ts';
import { bulk, bulkCancel } from '../vouchers/bulk.ts';
import { addOperations } from './commands.ts';
import { addVoucherExport } from './export.ts';
import { untilStopped } from './open.ts';
import { interrupted, numberOf, printJson, say } from './output.ts';
import { performWith } from './perform.ts';
import { showProgress } from './progress.ts';
import type { Stop } from './signals.ts';

const POLL_MS = 250;

/** Adds the commands that wait for a job, and that write a code into a file. */
export function addOwn(voucher: Command): void {
  for (const operation of tableOf(bulk, bulkCancel)) {
    const [, word = ''] = String(operation.command).split(' ');
    addOperations(voucher.command(word), [operation], (input, { json }) => run(operation, input, json));
  }
  addVoucherExport(voucher);
}

/** Starts a job, and waits for its end. The exit status is 1 if a voucher was not changed. */
async function run(operation: AnyOperation, input: object, json: boolean | undefined): Promise<void> {
  await untilStopped(async (service, _config, stop) => {
    const started = (await performWith(service, operation, input as never)) as Job;
    const job = await follow(service, started, stop, json);
    const changed = job.done - job.failed;
    if (changed < job.total) process.exitCode = 1;
    if (json) return printJson(job);
    const left = job.total - job.done;
    say(
      `${numberOf(changed, 'voucher')} changed, ${job.failed} declined${left ? `, ${left} not done` : ''}: ` +
        `\`scrip job rows ${job.id}\``,
    );
  });
}

/** Runs a job in this process, unless another process does, and shows its progress. */
async function follow(service: Service, { id, total }: Job, stop: Stop, quiet = false): Promise<Job> {
  const running = runJob(service, [groupOf(JOB_RUNS)], Number(id), stop.isAsked);
  const progress = showProgress('vouchers', quiet);
  try {
    for (;;) {
      const job = await performWith(service, showJob, { id });
      progress.update(job.done, total);
      if (job.state === 'COMPLETED' || job.state === 'CANCELED' || job.state === 'FAILED') return job;
      if (stop.isAsked()) interrupted(`interrupted: job ${id} goes on in \`scrip serve\` or \`scrip work\``);
      await Promise.race([sleep(POLL_MS), stop.asked]);
    }
  } finally {
    progress.stop();
    await running;
  }
}
