import type { Command } from 'commander';
import { sweep, TASKS } from '../batches/tasks.ts';
import { startWorker } from '../jobs/worker.ts';
import { flushLog } from '../log.ts';
import { openService } from './open.ts';
import { untilStopped } from './stop.ts';

export function registerWork(program: Command): void {
  program.command('work').description('run the background work alone, beside `scrip serve --no-work`').action(work);
}

async function work(): Promise<void> {
  const stop = untilStopped();
  const { service, close } = await openService('scrip-work');
  try {
    const worker = await startWorker(service, TASKS, sweep);
    service.log.info('working');
    await stop;
    service.log.info('stopping');
    await worker.stop();
  } finally {
    await close();
    await flushLog(service.log);
  }
}
