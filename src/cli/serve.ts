import type { Command } from 'commander';
import { sweep, TASKS } from '../batches/tasks.ts';
import { StartError } from '../db/start-error.ts';
import { buildServer, SERVED } from '../http/server.ts';
import { startWorker } from '../jobs/worker.ts';
import { flushLog } from '../log.ts';
import { openService } from './open.ts';
import { untilStopped } from './stop.ts';

export function registerServe(program: Command): void {
  program
    .command('serve')
    .description('run the API and the background work in this process; migrations are applied first')
    .option('--demo', 'add a demo merchant, and print curl lines that can be pasted')
    .option('--no-work', 'leave the background work to `scrip work`')
    .action(serve);
}

async function serve(options: { demo?: boolean; work: boolean }): Promise<void> {
  const stop = untilStopped();
  const { service, config, close } = await openService('scrip-serve');
  const app = buildServer(service);
  try {
    await app.listen({ host: config.host, port: config.port }).catch((error: NodeJS.ErrnoException) => {
      throw explain(error, config.host, config.port);
    });
    const worker = options.work ? await startWorker(service, TASKS, sweep) : undefined;
    const address = app.server.address();
    const port = typeof address === 'object' && address ? address.port : config.port;
    const baseUrl = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`;
    await say(options.demo ?? false, baseUrl, service, config.dataDir);
    service.log.info({ host: config.host, port, work: options.work }, 'serving');
    await stop;
    service.log.info('stopping: what was accepted is finished first');
    await app.close();
    await worker?.stop();
  } finally {
    await app.close();
    await close();
    await flushLog(service.log);
  }
}

async function say(
  demo: boolean,
  baseUrl: string,
  ...[service, dataDir]: [Parameters<typeof buildServer>[0], string]
): Promise<void> {
  const lines = [
    `Scrip serves ${baseUrl}`,
    ...SERVED.map(({ title, prefix }) => `  ${title.padEnd(24)}${baseUrl}${prefix}`),
    `  ${'Documentation'.padEnd(24)}${baseUrl}/docs/`,
    `  ${'Health'.padEnd(24)}${baseUrl}/healthz and ${baseUrl}/readyz`,
  ];
  if (demo) {
    const { prepareDemo } = await import('./demo.ts');
    lines.push('', ...(await prepareDemo(service, baseUrl, dataDir)));
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function explain(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new StartError(`port ${port} at ${host} is taken: stop what listens there, or set SCRIP_PORT`);
  if (error.code === 'EACCES')
    return new StartError(`port ${port} may not be used by this account: set SCRIP_PORT to one above 1023`);
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND')
    return new StartError(`${host} is no address of this machine: check SCRIP_HOST`);
  return error;
}
