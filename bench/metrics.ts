import { join } from 'node:path';
import { Batcher } from '../src/db/batcher.ts';
import type { Operation } from '../src/db/operation.ts';
import type { Database } from '../src/db/pool.ts';
import { createLogger } from '../src/log.ts';
import { createMetrics } from '../src/monitor/metrics.ts';
import { startTracing } from '../src/monitor/tracing.ts';
import { median, print } from './figures.ts';
import type { Given } from './scenario.ts';

const ROUNDS = 7;
const CALLS = 200_000;
/** Requests that share a statement. */
const GATHERED = 8;
const STATUSES = ['00', '00', '00', '51'] as const;

const metrics = createMetrics();
const observe = metrics.call('b', 'redeemVoucher');

async function count(): Promise<void> {
  for (let call = 0; call < CALLS; call++) {
    observe(STATUSES[call % STATUSES.length] as string, 1 + (call % 50));
    if (call % GATHERED === 0) metrics.batched(GATHERED, call % 10);
  }
}

const NOWHERE = {
  export: (_spans: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
  shutdown: async () => {},
};
const ASKED = { method: 'POST', route: '/api/v2/redeem', operation: 'redeemVoucher', variant: 'b' };
const ANSWERED = { httpStatus: 200, statusCode: '00', merchantId: 1 };

/** The spans of calls, with their export up to the network. */
const trace = (sampler: string) => {
  process.env['OTEL_TRACES_SAMPLER'] = 'traceidratio';
  process.env['OTEL_TRACES_SAMPLER_ARG'] = sampler;
  const tracing = startTracing('0.0.0', createLogger('silent'), NOWHERE);
  return async () => {
    for (let call = 0; call < CALLS / GATHERED; call++) {
      const requests = Array.from({ length: GATHERED }, () =>
        tracing.request({ ...ASKED, traceparent: undefined, isTrusted: false }),
      );
      const addedAt = performance.now();
      const waited = requests.map((each) => each.run(() => ({ span: tracing.current(), addedAt })));
      tracing.batched(waited).end();
      const transactionId = '0192f0c1-7e6a-7000-8000-000000000001';
      for (const each of requests) each.end({ ...ANSWERED, transactionId });
      if (call % 32 === 0) await new Promise(setImmediate);
    }
  };
};

const OPERATION: Operation<number, number, number> = {
  keysOf: (request) => [`voucher ${request}`, `reference ${request}`],
  merchantOf: (request) => request % 4,
  run: async (_db, requests) => requests,
  answer: (_request, row) => row,
};

/** Requests that go through a batcher to a database that answers at once. */
const batch = (batcher: Batcher) => async () => {
  for (let call = 0; call < CALLS; call += GATHERED)
    await Promise.all(Array.from({ length: GATHERED }, (_, at) => batcher.add(OPERATION, 0, call + at)));
};

/**
 * The cost of metrics and traces: the CPU time that a call spends in the counters, in the spans of its trace,
 * and in the batcher without either, in one process.
 */
export async function run({ values }: Given): Promise<void> {
  const subjects: Record<string, () => Promise<void>> = {
    counters: count,
    spans: trace('1'),
    'spans, 1 %': trace('0.01'),
    batcher: batch(new Batcher({} as Database)),
  };
  if (typeof values['base'] === 'string') {
    const base = (await import(join(values['base'], 'src/db/batcher.ts'))) as { Batcher: typeof Batcher };
    subjects['batcher of the base'] = batch(new base.Batcher({} as Database));
  }
  const figures = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, work] of Object.entries(subjects)) {
      const from = process.cpuUsage();
      await work();
      const { user, system } = process.cpuUsage(from);
      // The first round compiles the code.
      if (round > 0) figures.get(name)?.push((user + system) / CALLS);
    }
  for (const [name, found] of figures)
    print(
      `${name}: ${median(found).toFixed(2)} µs of CPU a call (${Math.min(...found).toFixed(2)} to ${Math.max(...found).toFixed(2)})`,
    );
}
