import type { Config } from '../config.ts';
import type { Service } from '../context.ts';
import type { MetricsServer } from '../http/metrics.ts';

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
