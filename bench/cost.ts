import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { temporaryFolder } from '../test/support/leave-nothing.ts';
import { median, print, textOf } from './figures.ts';
import { type Measured, measure } from './measure.ts';
import { type Given, numberOf, wants } from './scenario.ts';
import { MAIN, Stage, settingsIn } from './stage.ts';

/** Receives spans, and drops them. */
async function startCollector(): Promise<string> {
  const server = createServer((request, response) => {
    request
      .resume()
      .on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Makes a backup at a low priority. @returns how long it took, in seconds */
async function backUp(folder: string, into: string): Promise<number> {
  const env = settingsIn(folder);
  const startedAt = performance.now();
  const command = ['-n', '10', process.execPath, MAIN, 'backup', into, '--keep', '1'];
  const [status] = await once(spawn('nice', command, { env, stdio: 'ignore' }), 'exit');
  if (status !== 0) throw new Error(`the backup ended with status ${status}`);
  return (performance.now() - startedAt) / 1_000;
}

type Kind = {
  readonly settings: Readonly<Record<string, string>>;
  readonly backs?: true;
};

/**
 * What metrics, traces and a backup cost redemptions. In turns: with nothing on, with metrics, with traces,
 * with a hundredth of the traces, and beside a backup, which begins with the turn and has the priority that
 * deploy/systemd gives it. Compare the ratios to the turns with nothing on.
 */
export async function run(given: Given): Promise<void> {
  const shape = { connections: numberOf(given, 'connections'), seconds: numberOf(given, 'seconds') };
  const endpoint = await startCollector();
  const all: Readonly<Record<string, Kind>> = {
    nothing: { settings: {} },
    metrics: { settings: { SCRIP_METRICS_PORT: '0' } },
    traces: { settings: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } },
    'traces, 1 %': {
      settings: {
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0.01',
      },
    },
    backup: { settings: {}, backs: true },
  };
  const kinds = Object.fromEntries(Object.entries(all).filter(([kind]) => wants(given, kind)));
  const stage = await Stage.open();
  const into = await temporaryFolder('scrip-bench-backups-');
  const first = await stage.serve();
  const stock = await stage.stock(0, 0);
  await measure(stage, first, stock, 'redeem', shape);
  await first.stop();
  const runs = new Map<string, Measured[]>(Object.keys(kinds).map((kind) => [kind, []]));
  for (let turn = 1; turn <= numberOf(given, 'turns'); turn++)
    for (const [kind, { settings, backs }] of Object.entries(kinds)) {
      const serve = await stage.serve(['--processes', '1'], [], settings);
      // The first calls compile the code.
      await measure(stage, serve, stock, 'redeem', { ...shape, seconds: 1 });
      const making = backs ? backUp(stage.folder, into) : undefined;
      const measured = await measure(stage, serve, stock, 'redeem', shape);
      runs.get(kind)?.push(measured);
      const made = making ? `, a backup of ${(await making).toFixed(1)} s` : '';
      print(
        `${kind}: ${textOf(measured)}, CPU ${measured.serviceCpuUs.toFixed(1)} + ${measured.databaseCpuUs.toFixed(1)} µs${made}`,
      );
      await serve.stop();
    }
  const of = (kind: string, figure: 'perSecond' | 'p99Ms' | 'serviceCpuUs' | 'databaseCpuUs') =>
    median((runs.get(kind) ?? []).map((run) => run[figure]));
  const cpu = (kind: string) => of(kind, 'serviceCpuUs') + of(kind, 'databaseCpuUs');
  for (const kind of runs.keys())
    print(
      `${kind}: ${(of(kind, 'perSecond') / of('nothing', 'perSecond')).toFixed(3)} of the redemptions, ` +
        `${(cpu(kind) / cpu('nothing')).toFixed(3)} of the CPU of each, p99 ${of(kind, 'p99Ms').toFixed(1)} ms`,
    );
}
