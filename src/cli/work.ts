import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { createLogger, flushLog } from '../log.ts';
import { startBackground } from './background.ts';
import { openService } from './open.ts';
import { listenForStop } from './stop.ts';

export function registerWork(program: Command): void {
  program
    .command('work')
    .description('run the background work only, beside processes of `scrip serve --no-work`')
    .action(work);
}

async function work(): Promise<void> {
  const stop = listenForStop();
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const { service, close } = await openService(config, { name: 'scrip-work', create: true, log, isService: true });
  try {
    if (!stop.isAsked()) {
      const worker = await startBackground(service, config);
      log.info('working');
      await stop.asked;
      log.info('stopping');
      await Promise.race([worker.stop(), stop.hurried]);
    }
  } finally {
    const hurried = await close(stop.hurried);
    await flushLog(log);
    if (hurried) process.exit(1);
  }
}
