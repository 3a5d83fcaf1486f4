import { availableParallelism } from 'node:os';
import { temporaryFolder } from '../test/support/leave-nothing.ts';
import { median, middle, print, type Rate, textOf } from './figures.ts';
import { type Measured, measure, type Shape } from './measure.ts';
import { halfOf } from './play.ts';
import { type Serve, type Stage, serveIn } from './stage.ts';
import { yardstick } from './yardstick.ts';

/**
 * Redemptions by one client, at half of the greatest load, and at the greatest. For higher loads see
 * overload.ts.
 */

const GREATEST_CONNECTIONS = 128;
const STARTS = 5;
const PROCESSES = [1, 2];

const show = (run: Load) => `${textOf(run)}, failed ${run.failed}`;

type Load = Rate & { readonly failed: number };

export type LatencyResult = { readonly alone: Load; readonly half: Load; readonly greatest: Load };

/** Redemptions by one client, at half of the greatest load, and at the greatest. */
export async function measureLatency(stage: Stage, seconds: number, turns: number): Promise<LatencyResult> {
  const serve = await stage.serve();
  const stock = await stage.stock(0, 0);
  const redeem = async (clients: Omit<Shape, 'seconds'>): Promise<Load> => {
    const shape = { ...clients, seconds };
    const { perSecond, p50Ms, p99Ms, p999Ms, failed } = await measure(stage, serve, stock, 'redeem', shape);
    return { perSecond, p50Ms, p99Ms, p999Ms, failed };
  };
  await redeem({ connections: GREATEST_CONNECTIONS });
  const runs: Record<keyof LatencyResult, Load[]> = { alone: [], half: [], greatest: [] };
  for (let turn = 1; turn <= turns; turn++) {
    const greatest = await redeem({ connections: GREATEST_CONNECTIONS });
    runs.greatest.push(greatest);
    runs.half.push(await redeem(halfOf(greatest.perSecond)));
    runs.alone.push(await redeem({ connections: 1 }));
    for (const name of ['alone', 'half', 'greatest'] as const)
      print(`  ${name}: ${show(runs[name].at(-1) as Load)}`);
  }
  await serve.stop();
  return { alone: middle(runs.alone), half: middle(runs.half), greatest: middle(runs.greatest) };
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
  const runs = PROCESSES.map((processes) => ({ processes, all: [] as { ratio: number; run: Measured }[] }));
  for (let turn = 1; turn <= turns; turn++) {
    for (const { processes, all } of runs) {
      const serve: Serve = await stage.serve(['--processes', String(processes)]);
      try {
        const stock = await stage.stock(0, 0);
        const calls = await yardstick(stage, 'function', seconds);
        await measure(stage, serve, stock, 'redeem', { connections: GREATEST_CONNECTIONS, seconds: 2 });
        const run = await measure(stage, serve, stock, 'redeem', {
          connections: GREATEST_CONNECTIONS,
          seconds,
        });
        all.push({ ratio: run.perSecond / calls, run });
        print(
          `  ${processes} process(es): ${show(run)}, ${(run.perSecond / calls).toFixed(2)} × stored function`,
        );
      } finally {
        await serve.stop();
      }
    }
  }
  return runs.map(({ processes, all }) => ({ processes, ...middle(all) }));
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
