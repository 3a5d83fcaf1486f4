import type { Command } from 'commander';
import { announceExpiries } from '../api-keys/expiry.ts';
import { readVouchersOf } from '../batches/export.ts';
import { BATCH_JOBS } from '../batches/fill.ts';
import { keepBooks } from '../books/close.ts';
import { type Config, readConfig } from '../config.ts';
import type { Service } from '../context.ts';
import { createPartitions } from '../db/partitions.ts';
import { requireOwnSession } from '../db/pooler.ts';
import type { MetricsServer } from '../http/metrics.ts';
import { groupOf } from '../jobs/jobs.ts';
import { type Scheduled, startJobs } from '../jobs/queue.ts';
import { resolveOldHolds } from '../ledger/holds.ts';
import { createLogger, flushLog } from '../log.ts';
import { JOB_RUNS } from '../operations/background.ts';
import { deleteWhatEnded } from '../people/sessions.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { HOUR_MS, MINUTE_MS } from '../time.ts';
import { dropDeclines } from '../vouchers/declines.ts';
import { startDelivery } from '../webhooks/deliver.ts';
import { dropDeliveries, endAbandoned } from '../webhooks/record.ts';
import { createSender } from '../webhooks/send.ts';
import { type Opened, openService } from './open.ts';
import { isOneOfSeveral, leaveProcesses } from './processes.ts';
import { refuseSandbox, type SandboxConfig } from './sandbox.ts';
import { listenForStop, type Stop } from './signals.ts';

/**
 * All work that runs by the calendar, in UTC. Tills go on beside it, and so do long readers such as reports
 * and dumps. No entry may wait in front of a till: a test runs each of them between the two.
 */
export const SCHEDULE: Readonly<Record<string, Scheduled>> = {
  // Sweeps expired vouchers, seals slices, and closes days.
  'keep-books': {
    everyMs: 5 * MINUTE_MS,
    run: (service, stopping) => keepBooks(service, DAY_ENDS, stopping),
  },
  'create-partitions': {
    everyMs: 10 * MINUTE_MS,
    async run({ db, clock }) {
      const now = clock();
      await createPartitions(db, now, now);
    },
  },
  'end-deliveries': { everyMs: 10 * MINUTE_MS, run: endAbandoned },
  'announce-expiries': { everyMs: 10 * MINUTE_MS, run: announceExpiries },
  'drop-deliveries': { everyMs: HOUR_MS, run: dropDeliveries },
  'drop-declines': { everyMs: HOUR_MS, run: dropDeclines },
  'delete-sign-ins': { everyMs: 10 * MINUTE_MS, run: deleteWhatEnded },
  // What a process that died left on a float.
  'resolve-holds': { everyMs: 5_000, run: resolveOldHolds },
};

export function registerWork(program: Command): void {
  program
    .command('work')
    .description('run only the background work, in addition to processes of `scrip serve --no-work`')
    .action(work);
}

async function work(): Promise<void> {
  const stop = listenForStop();
  await runService(readConfig(), { name: 'scrip-work', create: false }, stop, async ({ service, config }) => {
    const metrics = await startMetrics(service, config);
    const worker = await startBackground(service, config).catch(async (error: unknown) => {
      await metrics?.close();
      throw error;
    });
    service.log.info('working');
    await stop.asked;
    service.log.info('stopping');
    await Promise.race([Promise.all([worker.stop(), metrics?.close()]), stop.urged]);
  });
}

/**
 * Opens the service of a process, runs it unless the process is asked to stop first, and closes it. The exit
 * status is 1 if a second signal ended the wait for accepted work.
 */
export async function runService(
  config: SandboxConfig,
  opening: { readonly name: string; readonly create: boolean },
  stop: Stop,
  run: (opened: Opened) => Promise<void>,
): Promise<void> {
  await refuseSandbox(config);
  const log = createLogger(config.logLevel);
  const opened = await openService(config, { ...opening, log, isService: true }).catch((error: unknown) => {
    leaveProcesses();
    throw error;
  });
  try {
    if (!stop.isAsked()) await run(opened);
  } finally {
    const urged = await opened.close(stop.urged);
    await flushLog(log);
    if (urged || isOneOfSeveral()) process.exit(urged ? 1 : 0);
  }
}

/** Starts the background work: the jobs, and the deliveries of webhooks. */
export async function startBackground(
  service: Service,
  { databaseUrl, webhookAllowPrivate }: Config,
): Promise<{ stop(): Promise<void> }> {
  if (databaseUrl !== undefined) await requireOwnSession(databaseUrl, 'background work needs');
  const sender = createSender({ allowPrivate: webhookAllowPrivate, clock: service.clock });
  const delivery = startDelivery(service, sender, readVouchersOf);
  const jobs = startJobs(service, [BATCH_JOBS, groupOf(JOB_RUNS)], SCHEDULE);
  return {
    async stop() {
      await Promise.all([delivery.stop(), jobs.stop()]);
    },
  };
}

/**
 * Serves the metrics, if they are configured.
 * @param isSupervisor whether other processes answer the calls, and this one reports their counts
 * @throws StartError if the port cannot be used
 */
export async function startMetrics(
  service: Service,
  config: Config,
  isSupervisor = false,
): Promise<MetricsServer | undefined> {
  const { metrics, log } = service;
  if (config.metricsPort === undefined || !metrics) return undefined;
  const [{ serveMetrics }, { createGauges }] = await Promise.all([
    import('../http/metrics.ts'),
    import('../monitor/gauges.ts'),
  ]);
  metrics.watchPools(service.db.pools);
  const readGauges = createGauges(service, config.databaseUrl === undefined ? config.dataDir : undefined);
  const readCounts = isSupervisor ? metrics.textOfProcesses : metrics.text;
  const server = await serveMetrics({ host: config.host, port: config.metricsPort }, async () =>
    (await Promise.all([readCounts(), readGauges()])).join('\n'),
  );
  log.info({ host: config.host, port: server.port }, 'serving metrics');
  return server;
}
