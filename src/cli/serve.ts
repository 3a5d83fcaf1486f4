import { type AddressInfo, createServer } from 'node:net';
import type { Command } from 'commander';
import { type Config, readConfig } from '../config.ts';
import type { Service } from '../context.ts';
import { StartError } from '../db/start-error.ts';
import { buildServer, SERVED } from '../http/server.ts';
import { flushLog } from '../log.ts';
import { startBackground } from './background.ts';
import { openService } from './open.ts';
import { countProcesses, isOneOfSeveral, startProcesses } from './processes.ts';
import { listenForStop, type Stop } from './stop.ts';

/** A service that is asked to stop still accepts connections for so long: load balancers learn of it from `/readyz`. */
const GRACE_MS = 1_000;
/** Connections that may wait to be accepted: a crowd that connects at once waits here, where the system has room. */
const BACKLOG = 4_096;

type ServeOptions = { readonly demo?: boolean; readonly work: boolean; readonly processes?: string };

export function registerServe(program: Command): void {
  program
    .command('serve')
    .description('run the API and the background work in this process; migrations are applied first')
    .option('--demo', 'add a demo merchant, and print curl lines that can be pasted')
    .option('--no-work', 'leave the background work to `scrip work`')
    .option('--processes <n>', 'answer in so many processes on one port (default: the cores less one, at least 1)')
    .action(serve);
}

async function serve(options: ServeOptions): Promise<void> {
  const stop = listenForStop();
  const config = readConfig();
  const count = isOneOfSeveral() ? 1 : countProcesses(options.processes);
  // Before anything is made or started: this is what goes wrong most often.
  if (!isOneOfSeveral()) await checkAddress(config);
  const { service, close } = await openService('scrip-serve', config);
  try {
    if (!stop.isAsked()) await serveUntilStopped(service, config, options, count, stop);
  } finally {
    const hurried = await close(stop.hurried);
    await flushLog(service.log);
    if (hurried || isOneOfSeveral()) process.exit(hurried ? 1 : 0);
  }
}

/** What answers: this process, or several that it watches over. */
type Door = { readonly port: number; close(): Promise<unknown>; hurry(): void };

async function serveUntilStopped(
  service: Service,
  config: Config,
  options: ServeOptions,
  count: number,
  stop: Stop,
): Promise<void> {
  const { log } = service;
  const door = count > 1 ? await openDoors(service, count, stop) : await openDoor(service, config);
  try {
    const isWatched = isOneOfSeveral();
    const worker = options.work && !isWatched ? await startBackground(service, config) : undefined;
    if (!isWatched) await say(service, config, addressForPeople(config.host, door.port), options.demo ?? false);
    log.info({ host: config.host, port: door.port, work: options.work && !isWatched, processes: count }, 'serving');
    await stop.asked;
    log.info('stopping: what was accepted is finished first');
    const finished = Promise.all([door.close(), worker?.stop()]).then(() => true);
    if (!(await Promise.race([finished, stop.hurried.then(() => false)]))) {
      log.warn('stopping at once: what was accepted is not waited for');
      door.hurry();
    }
  } catch (error) {
    await door.close();
    throw error;
  }
}

async function openDoor(service: Service, config: Config): Promise<Door> {
  const app = buildServer(service, { ...config, graceMs: GRACE_MS });
  try {
    await app.listen({ host: config.host, port: config.port, backlog: BACKLOG });
    const { port } = app.server.address() as AddressInfo;
    return { port, close: () => app.close(), hurry: () => app.server.closeAllConnections() };
  } catch (error) {
    await app.close();
    throw explain(error as NodeJS.ErrnoException, config);
  }
}

/** Those that are hurried hear it themselves (processes.ts). */
async function openDoors(service: Service, count: number, stop: Stop): Promise<Door> {
  const processes = await startProcesses(service, count, stop);
  return { port: processes.port, close: () => processes.stop(), hurry: () => {} };
}

/** Whether the address can be had; refused in one line if it cannot. Port 0 always can. */
async function checkAddress(config: Config): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, config)));
    probe.listen(config.port, config.host, () => probe.close(() => resolve()));
  });
}

/** An address to paste: one that means "every address" cannot be called. */
function addressForPeople(host: string, port: number): string {
  const called = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
  return `http://${called.includes(':') ? `[${called}]` : called}:${port}`;
}

async function say(service: Service, config: Config, baseUrl: string, demo: boolean): Promise<void> {
  const lines = [
    `Scrip serves ${baseUrl}`,
    ...SERVED.map(({ title, prefix }) => `  ${title.padEnd(24)}${baseUrl}${prefix}`),
    `  ${'Documentation'.padEnd(24)}${baseUrl}/docs/`,
    `  ${'Health'.padEnd(24)}${baseUrl}/healthz and ${baseUrl}/readyz`,
  ];
  if (demo) {
    const { prepareDemo } = await import('./demo.ts');
    lines.push('', ...(await prepareDemo(service, baseUrl, config.dataDir)));
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function explain(error: NodeJS.ErrnoException, { host, port }: Config): Error {
  if (error.code === 'EADDRINUSE')
    return new StartError(`port ${port} at ${host} is taken: stop what listens there, or set SCRIP_PORT`);
  if (error.code === 'EACCES')
    return new StartError(`port ${port} may not be used by this account: set SCRIP_PORT to one above 1023`);
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN')
    return new StartError(`${host} is no address of this machine: check SCRIP_HOST`);
  return error;
}
