import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Gauge, Registry } from 'prom-client';
import { type Config, readConfig } from '../config.ts';
import { serveMetrics } from '../http/metrics.ts';
import { createLogger } from '../log.ts';
import { described } from '../monitor/metrics.ts';
import { printFields, printJson, say, wrongUsage } from './output.ts';
import { countOf, parseOrigin } from './parse.ts';
import { listenForStop, type Stop } from './signals.ts';
import { STEPS, type Step, StepFailed, Till } from './till.ts';

/**
 * `scrip probe`: a sale from outside, through the load balancer and everything else that a till's call
 * passes. It finds what no process of the service can see of itself.
 */

const EVERY_MAX_SECONDS = 3_600;
const MS = 1_000;

export function registerProbe(program: Command): void {
  program
    .command('probe')
    .description(
      'redeem a voucher of its own and take it back, from outside, as a till does; exit status 1 if that fails',
    )
    .requiredOption('--url <address>', 'the address of the service, as tills have it', parseOrigin)
    .option(
      '--every <seconds>',
      'go on at this interval, and serve the outcome to Prometheus at SCRIP_METRICS_PORT',
      countOf('--every', 1, EVERY_MAX_SECONDS),
    )
    .option('--json', 'print JSON')
    .action(run);
}

type Options = { readonly url: string; readonly every?: number; readonly json?: boolean };

async function run({ url, every, json }: Options): Promise<void> {
  // A signal does not end the probe before it has reversed its redemption.
  const stop = listenForStop();
  const config = readConfig();
  const till = new Till(url, config, 'probe-');
  if (every !== undefined) return goOn(till, every * MS, config, stop);
  const { failure, seconds } = await probe(till);
  if (failure) process.exitCode = 1;
  if (json) return printJson({ ok: !failure, failure: failure?.message ?? null, seconds });
  printFields(
    Object.fromEntries(Object.entries(seconds).map(([step, took]) => [step, `${took.toFixed(3)} s`])),
  );
  say(failure ? `The service does not sell: ${failure.message}` : 'The service sells.');
}

type Probed = { readonly failure?: StepFailed; readonly seconds: Partial<Record<Step, number>> };

async function probe(till: Till): Promise<Probed> {
  const seconds: Partial<Record<Step, number>> = {};
  try {
    await till.sell(await till.card(0, new Date()), (step, ms) => {
      seconds[step] = ms / MS;
    });
    return { seconds };
  } catch (failure) {
    if (failure instanceof StepFailed) return { failure, seconds };
    throw failure;
  }
}

export const PROBE_METRICS = {
  scrip_probe_success: {
    help: '1 if the last probe could redeem a voucher and take that back.',
    labelNames: [],
  },
  scrip_probe_seconds: {
    help: 'How long each step of the last probe took; absent for steps that failed or were not reached.',
    labelNames: ['step'],
  },
} as const;

export function probeMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const [up, seconds] = [
    new Gauge({ ...described(PROBE_METRICS, 'scrip_probe_success'), registers }),
    new Gauge({ ...described(PROBE_METRICS, 'scrip_probe_seconds'), registers }),
  ];
  return {
    text: () => registry.metrics(),
    set({ failure, seconds: took }: Probed) {
      up.set(failure ? 0 : 1);
      seconds.reset();
      for (const step of STEPS) if (took[step] !== undefined) seconds.set({ step }, took[step]);
    },
  };
}

async function goOn(
  till: Till,
  everyMs: number,
  { host, metricsPort: port, logLevel }: Config,
  stop: Stop,
): Promise<void> {
  if (port === undefined) wrongUsage('--every needs SCRIP_METRICS_PORT, at which it serves the outcome');
  const log = createLogger(logLevel);
  const metrics = probeMetrics();
  const server = await serveMetrics({ host, port }, metrics.text);
  log.info({ host, port: server.port }, 'probing');
  let wasFailing = false;
  while (!stop.isAsked()) {
    const due = performance.now() + everyMs;
    const probed = await probe(till);
    metrics.set(probed);
    if (probed.failure) log.warn({ error: probed.failure.message }, 'the service does not sell');
    else if (wasFailing) log.info('the service sells again');
    wasFailing = probed.failure !== undefined;
    await Promise.race([stop.asked, sleep(due - performance.now())]);
  }
  await server.close();
}
