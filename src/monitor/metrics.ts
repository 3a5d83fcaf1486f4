import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type PrometheusContentType,
  Registry,
} from 'prom-client';

/** The metrics of a process, for Prometheus. Metrics from the database are read in src/monitor/. */

/**
 * The upper bounds in seconds. A till waits at most five; differences below two milliseconds do not matter.
 */
const LATENCY_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const WAIT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const ROWS_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128];
/** An internal error. */
const ERROR = '96';

/** What each metric is. Its labels follow. */
export const METRICS = {
  scrip_calls_total: {
    help: 'Calls that were answered; `status` is a status code, so declines are those other than `00`.',
    labelNames: ['variant', 'operation', 'status'],
  },
  scrip_call_seconds: {
    help: 'How long calls took, from the head of the request to the end of the answer: a histogram.',
    labelNames: ['variant', 'operation'],
  },
  scrip_gather_rows: {
    help: 'Requests that one call to the database answered: a histogram.',
    labelNames: [],
  },
  scrip_gather_wait_seconds: {
    help: 'How long the first request of such a call had waited: a histogram.',
    labelNames: [],
  },
  scrip_pool_connections: {
    help: 'Connections to the database: `used`, `idle`, and statements that are `waiting` for one.',
    labelNames: ['pool', 'state'],
  },
} as const;

type Descriptions = Readonly<
  Record<string, { readonly help: string; readonly labelNames: readonly string[] }>
>;

/** Returns what the library wants of a metric, whose labels it takes as an array of its own. */
export function described<All extends Descriptions, Name extends keyof All & string>(all: All, name: Name) {
  const { help, labelNames } = all[name] as All[Name];
  return { name, help, labelNames: [...labelNames] as All[Name]['labelNames'][number][] };
}

/** Counts a call that has ended. */
export type ObserveCall = (statusCode: string, durationMs: number) => void;

/** The connections of a pool, as the driver counts them. */
export type PoolUsage = {
  readonly totalCount: number;
  readonly idleCount: number;
  /** Statements that wait for a connection. */
  readonly waitingCount: number;
};

type Pools = Readonly<Record<string, PoolUsage>>;

/** The parts of the service report to this object. It is absent if metrics are off. */
export type Metrics = {
  /** Returns the counter of an operation's calls. Called once for each operation. */
  call(variant: string, operation: string): ObserveCall;
  /** Counts a call of the batcher: the number of its requests, and the wait of the first one. */
  batched(rows: number, waitMs: number): void;
  /** Reports the pools of a database at each scrape. */
  watchPools(pools: Pools): void;
  /** Returns the metrics of this process. */
  text(): Promise<string>;
  /** Returns the metrics of all processes that this one started to answer calls. */
  textOfProcesses(): Promise<string>;
};

export function createMetrics(): Metrics {
  const registry = new Registry<PrometheusContentType>();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const calls = new Counter({ ...described(METRICS, 'scrip_calls_total'), registers });
  const latency = new Histogram({
    ...described(METRICS, 'scrip_call_seconds'),
    registers,
    buckets: LATENCY_BUCKETS,
  });
  const rows = new Histogram({
    ...described(METRICS, 'scrip_gather_rows'),
    registers,
    buckets: ROWS_BUCKETS,
  });
  const wait = new Histogram({
    ...described(METRICS, 'scrip_gather_wait_seconds'),
    registers,
    buckets: WAIT_BUCKETS,
  });
  const aggregator = new AggregatorRegistry();
  AggregatorRegistry.setRegistries(registry);
  return {
    call(variant, operation) {
      const seconds = latency.labels({ variant, operation });
      // Cached for each status: a look-up by labels takes a microsecond.
      const byStatus = new Map<string, Counter.Internal>();
      // Prometheus sees an increase only after a first value: without it, the first error would not count.
      calls.inc({ variant, operation, status: ERROR }, 0);
      return (status, durationMs) => {
        let counter = byStatus.get(status);
        if (!counter) {
          counter = calls.labels({ variant, operation, status });
          byStatus.set(status, counter);
        }
        counter.inc();
        seconds.observe(durationMs / 1_000);
      };
    },
    batched(count, waitMs) {
      rows.observe(count);
      wait.observe(waitMs / 1_000);
    },
    watchPools: (pools) => watchPools(registry, pools),
    text: () => registry.metrics(),
    textOfProcesses: () => aggregator.clusterMetrics(),
  };
}

function watchPools(registry: Registry, pools: Pools): void {
  const gauge = new Gauge({
    ...described(METRICS, 'scrip_pool_connections'),
    registers: [registry],
    collect() {
      for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
        gauge.set({ pool, state: 'used' }, totalCount - idleCount);
        gauge.set({ pool, state: 'idle' }, idleCount);
        gauge.set({ pool, state: 'waiting' }, waitingCount);
      }
    },
  });
}
