import { existsSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { Command } from 'commander';
import { type Config, passedSocket, readConfig } from '../config.ts';
import type { Service } from '../context.ts';
import { StartError } from '../db/errors.ts';
import { finds } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import type { MetricsServer } from '../http/metrics.ts';
import { buildServer, SERVED } from '../http/server.ts';
import { addressToCall, baseUrlOf, isLoopback } from '../network.ts';
import type { Opened } from './open.ts';
import { wrongUsage } from './output.ts';
import { countOf } from './parse.ts';
import { countProcesses, isOneOfSeveral, PROCESSES_MAX, startProcesses } from './processes.ts';
import { openSandbox, requireSandbox, sandboxConfig } from './sandbox.ts';
import { listenForStop, type Stop } from './signals.ts';
import { answerWatch, watchProcesses } from './watchdog.ts';
import { runService, startBackground, startMetrics } from './work.ts';

/** How long the service waits after Ctrl-C for connections to end: no load balancer has to notice. */
const CTRL_C_DRAIN_MS = 1_000;
/**
 * The number of connections that may wait to be accepted. Many clients that connect at once wait in the
 * operating system.
 */
const BACKLOG = 4_096;

type ServeOptions = {
  readonly demo?: boolean;
  readonly sandbox?: boolean;
  readonly work: boolean;
  readonly processes?: number;
};

export function registerServe(program: Command): void {
  program
    .command('serve')
    .description('run the API and the background work in this process; migrations are applied first')
    .option('--demo', 'add a demo merchant, and print curl commands and links that sign in')
    .option('--sandbox', "serve a sandbox for integrators' tests, in a separate data folder")
    .option('--no-work', 'leave the background work to `scrip work`')
    .option(
      '--processes <n>',
      'answer in several processes on one port (default: one less than the number of cores, at least 1)',
      countOf('--processes', 1, PROCESSES_MAX),
    )
    .action(serve);
}

async function serve(options: ServeOptions): Promise<void> {
  const stop = listenForStop();
  if (options.sandbox && (options.demo || !options.work || options.processes !== undefined))
    wrongUsage('--sandbox stands alone: without --demo, --no-work and --processes');
  const config = options.sandbox ? sandboxConfig(readConfig()) : readConfig();
  const count = options.sandbox || isOneOfSeveral() ? 1 : (options.processes ?? countProcesses());
  // Before anything is created or started: a port in use is the most frequent failure.
  if (!isOneOfSeveral() && findSocket() === undefined) await checkAddress(config);
  if (options.sandbox) await requireSandbox(config);
  const isDemo = options.demo === true && !isOneOfSeveral();
  if (
    (isDemo || options.sandbox) &&
    config.databaseUrl === undefined &&
    !existsSync(join(config.dataDir, 'postgres'))
  )
    tell(
      `first start: making a database in ${config.dataDir}${isDemo ? ', then its history' : ''}; the next start takes seconds`,
    );
  await runService(config, { name: 'scrip-serve', create: true }, stop, async (opened) => {
    if (isDemo) await playHistory(opened.service, opened.ownerUrl, stop);
    if (!stop.isAsked()) await serveUntilStopped(opened, config, options, count, stop);
  });
}

const tell = (line: string) => process.stderr.write(`scrip: ${line}\n`);

/**
 * Fills an empty database with the demo's history, and says so, since it takes some seconds. Meanwhile
 * nothing is served: the clock of the database is moved, and requests would be stamped with its time.
 */
async function playHistory(service: Service, ownerUrl: string, stop: Stop): Promise<void> {
  const { demoActor } = await import('./demo.ts');
  const { fillHistory } = await import('./demo-history.ts');
  await fillHistory(service, ownerUrl, demoActor(), { tell, stopping: stop.isAsked });
}

/** The part that answers calls: this process, or several processes that it supervises. */
type Listener = { readonly port: number; close(): Promise<unknown>; closeNow(): void };

async function serveUntilStopped(
  opened: Opened,
  config: Config,
  options: ServeOptions,
  count: number,
  stop: Stop,
): Promise<void> {
  const { service } = opened;
  const { log } = service;
  const isSupervisor = count > 1;
  const isSupervised = isOneOfSeveral();
  let metrics: MetricsServer | undefined;
  let listener: Listener | undefined;
  let worker: { stop(): Promise<void> } | undefined;
  const close = () => Promise.all([listener?.close(), worker?.stop(), metrics?.close()]);
  try {
    if (isSupervised) {
      answerWatch();
      service.metrics?.watchPools(service.db.pools);
    } else metrics = await startMetrics(service, config, isSupervisor);
    listener = isSupervisor
      ? await startSeveral(service, count, stop)
      : await startOne(opened, config, options, stop);
    if (options.work && !isSupervised) worker = await startBackground(service, config);
    if (!isSupervised) await greet(service, config, addressToCall(config.host, listener.port), options);
    log.info(
      { host: config.host, port: listener.port, work: options.work && !isSupervised, processes: count },
      'serving',
    );
    // A wrong clock, for example, stops no start. It is logged with its cause.
    await service.readiness.check(service);
    await stop.asked;
    log.info('stopping: accepted requests are finished first');
    const finished = close().then(() => true);
    if (!(await Promise.race([finished, stop.urged.then(() => false)]))) {
      log.warn('stopping at once: accepted requests are abandoned');
      listener.closeNow();
    }
  } catch (error) {
    // Remaining work would keep the process alive, and nothing would start the service again.
    await close();
    throw error;
  }
}

async function startOne(
  { service, clock, ownerUrl }: Opened,
  config: Config,
  options: ServeOptions,
  stop: Stop,
): Promise<Listener> {
  const sandbox = options.sandbox
    ? await openSandbox(service, { dataDir: config.dataDir, clock, ownerUrl })
    : undefined;
  const drain = () =>
    stop.signal() === 'SIGINT'
      ? { leastMs: 0, mostMs: CTRL_C_DRAIN_MS }
      : { leastMs: config.drainMs, mostMs: config.drainMs };
  const app = buildServer(service, { ...config, drain, sandbox });
  try {
    const fd = findSocket();
    const address = fd === undefined ? { host: config.host, port: config.port } : { host: config.host, fd };
    await app.listen({ ...address, backlog: BACKLOG });
    const { port } = app.server.address() as AddressInfo;
    return { port, close: () => app.close(), closeNow: () => app.server.closeAllConnections() };
  } catch (error) {
    await app.close();
    throw explain(error as NodeJS.ErrnoException, config);
  }
}

/** Starts several processes. A second signal reaches them directly (processes.ts). */
async function startSeveral(service: Service, count: number, stop: Stop): Promise<Listener> {
  const processes = await startProcesses(service, count, stop);
  const endWatch = watchProcesses(service.log);
  // One that drains may be busy, and ends in any case.
  void stop.asked.then(endWatch);
  return { port: processes.port, close: () => processes.stop(), closeNow: () => {} };
}

/** The socket that systemd has passed, to this process or to the one that has started it. */
const findSocket = () => passedSocket(isOneOfSeveral() ? process.ppid : process.pid);

/** Checks that the address can be used, and refuses it in one line. Port 0 is always free. */
async function checkAddress(config: Config): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, config)));
    probe.listen(config.port, config.host, () => probe.close(() => resolve()));
  });
}

async function greet(
  service: Service,
  config: Config,
  baseUrl: string,
  options: ServeOptions,
): Promise<void> {
  const lines = [
    `Scrip serves ${baseUrl}`,
    ...SERVED.map(({ title, prefix }) => `  ${title.padEnd(24)}${baseUrl}${prefix}`),
    `  ${'Console'.padEnd(24)}${baseUrl}/console/`,
    `  ${'Documentation'.padEnd(24)}${baseUrl}/docs/`,
    `  ${'Health'.padEnd(24)}${baseUrl}/healthz and ${baseUrl}/readyz`,
  ];
  if (options.sandbox) {
    lines.push('', `This is a sandbox. Its key, its vouchers and its amounts: ${baseUrl}/sandbox`);
  } else if (options.demo) {
    const { demoLinks, prepareDemo } = await import('./demo.ts');
    lines.push('', ...(await prepareDemo(service, baseUrl, config.dataDir)));
    // Only if no other machine can reach the port: those who read the output may then sign in.
    if (isLoopback(config.host) && config.publicUrl === undefined) {
      const port = Number(new URL(baseUrl).port);
      lines.push('', ...(await demoLinks(service, baseUrlOf({ ...config, port }))));
    }
  } else {
    if (!(await finds(service.db, sql`select from users limit 1`)))
      lines.push('', 'Next, open the console: scrip user invite YOU@EXAMPLE.COM --role owner');
    if (!(await finds(service.db, sql`select from merchants limit 1`)))
      lines.push('', 'Next, create a merchant: scrip merchant create --name NAME --float 1000');
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function explain(error: NodeJS.ErrnoException, { host, port }: Config): Error {
  if (error.code === 'EADDRINUSE')
    return new StartError(
      `port ${port} at ${host} is in use: stop the process that listens there, or set SCRIP_PORT`,
    );
  if (error.code === 'EACCES')
    return new StartError(`port ${port} is not allowed for this account: set SCRIP_PORT to one above 1023`);
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN')
    return new StartError(`${host} is not an address of this machine: check SCRIP_HOST`);
  return error;
}
