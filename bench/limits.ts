import { availableParallelism } from 'node:os';
import { temporaryFolder } from '../test/support/leave-nothing.ts';
import { type Measured, measure, median } from './measure.ts';
import { GENERATOR } from './play.ts';
import { type Serve, type Stage, serveIn } from './stage.ts';
import { yardstick } from './yardstick.ts';

/**
 * Redemptions by one client, at half of the greatest load, and at the greatest. For higher loads see
 * overload.ts.
 */

const GREATEST_CONNECTIONS = 128;
/** Clients at half load: enough that a client that waits does not delay the others. */
const HALF_CONNECTIONS = 64;
const STARTS = 5;
const PROCESSES = [1, 2];

const print = (line: string) => process.stdout.write(`${line}\n`);
const show = (run: { perSecond: number; p50Ms: number; p99Ms: number; p999Ms: number; failed: number }) =>
  `${Math.round(run.perSecond).toLocaleString('en')}/s, p50 ${run.p50Ms.toFixed(2)}, p99 ${run.p99Ms.toFixed(1)}, p99.9 ${run.p999Ms.toFixed(1)} ms, failed ${run.failed}`;

type Times = Pick<Measured, 'perSecond' | 'p50Ms' | 'p99Ms' | 'p999Ms' | 'failed'>;

export type LatencyResult = { readonly alone: Times; readonly half: Times; readonly greatest: Times };

/** Redemptions by one client, at half of the greatest load, and at the greatest. */
export async function measureLatency(stage: Stage, seconds: number, turns: number): Promise<LatencyResult> {
  const serve = await stage.serve();
  try {
    const stock = await stage.stock(0, 0);
    const redeem = (connections: number, pauseMs = 0) =>
      measure(stage, serve, stock, 'redeem', { connections, seconds, pauseMs });
    await redeem(GREATEST_CONNECTIONS);
    const runs: Record<keyof LatencyResult, Times[]> = { alone: [], half: [], greatest: [] };
    for (let turn = 1; turn <= turns; turn++) {
      const greatest = await redeem(GREATEST_CONNECTIONS);
      // autocannon sends the requests of a second at its beginning. Only wrk can pause, so that autocannon
      // gets fewer clients.
      const half =
        GENERATOR === 'wrk'
          ? await redeem(HALF_CONNECTIONS, (HALF_CONNECTIONS / (greatest.perSecond / 2)) * 1000)
          : await redeem(2);
      runs.greatest.push(greatest);
      runs.half.push(half);
      runs.alone.push(await redeem(1));
      for (const name of ['alone', 'half', 'greatest'] as const)
        print(`  ${name}: ${show(runs[name].at(-1) as Times)}`);
    }
    return { alone: middle(runs.alone), half: middle(runs.half), greatest: middle(runs.greatest) };
  } finally {
    await serve.stop();
  }
}

function middle(runs: readonly Times[]): Times {
  const of = (figure: keyof Times) => median(runs.map((run) => run[figure]));
  const failed = Math.max(...runs.map((run) => run.failed));
  return { perSecond: of('perSecond'), p50Ms: of('p50Ms'), p99Ms: of('p99Ms'), p999Ms: of('p999Ms'), failed };
}

export type ProcessesResult = readonly {
  readonly processes: number;
  readonly ratio: number;
  readonly run: Measured;
}[];

/** The same load on one process and on two, in alternating turns, each beside the yardstick of its turn. */
export async function measureProcesses(
  stage: Stage,
  seconds: number,
  turns: number,
): Promise<ProcessesResult> {
  const runs = PROCESSES.map((processes) => ({
    processes,
    ratios: [] as number[],
    measured: [] as Measured[],
  }));
  for (let turn = 1; turn <= turns; turn++) {
    for (const { processes, ratios, measured } of runs) {
      const serve: Serve = await stage.serve(['--processes', String(processes)]);
      try {
        const stock = await stage.stock(0, 0);
        const calls = await yardstick(stage, 'function', seconds);
        await measure(stage, serve, stock, 'redeem', { connections: GREATEST_CONNECTIONS, seconds: 2 });
        const run = await measure(stage, serve, stock, 'redeem', {
          connections: GREATEST_CONNECTIONS,
          seconds,
        });
        measured.push(run);
        ratios.push(run.perSecond / calls);
        print(
          `  ${processes} process(es): ${show(run)}, ${(run.perSecond / calls).toFixed(2)} × stored function`,
        );
      } finally {
        await serve.stop();
      }
    }
  }
  return runs.map(({ processes, ratios, measured }) => {
    const sorted = [...measured].sort((one, other) => one.perSecond - other.perSecond);
    return { processes, ratio: median(ratios), run: sorted[Math.floor(sorted.length / 2)] as Measured };
  });
}

export type StartResult = { readonly readyMs: number; readonly cores: number };

/** The time from the start on an existing database to the first 200 of /readyz. */
export async function measureStart(): Promise<StartResult> {
  const folder = await temporaryFolder('scrip-bench-start-');
  const times: number[] = [];
  for (let start = 0; start <= STARTS; start++) {
    const serve = await serveIn(folder, []);
    await serve.stop();
    if (start > 0) times.push(serve.readyMs);
  }
  const readyMs = median(times);
  print(
    `start with an existing database: ready after ${Math.round(readyMs)} ms (${times.map(Math.round).join(', ')})`,
  );
  return { readyMs, cores: availableParallelism() };
}
