import type { Command } from 'commander';
import { flushLog } from '../log.ts';
import { startBackground } from './background.ts';
import { openService } from './open.ts';
import { listenForStop } from './stop.ts';

export function registerWork(program: Command): void {
  program.command('work').description('run the background work alone, beside `scrip serve --no-work`').action(work);
}

async function work(): Promise<void> {
  const stop = listenForStop();
  const { service, config, close } = await openService('scrip-work');
  try {
    if (!stop.isAsked()) {
      const worker = await startBackground(service, config);
      service.log.info('working');
      await stop.asked;
      service.log.info('stopping');
      await Promise.race([worker.stop(), stop.hurried]);
    }
  } finally {
    const hurried = await close(stop.hurried);
    await flushLog(service.log);
    if (hurried) process.exit(1);
  }
}
