import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Load, play } from './play.ts';
import { OPERATIONS, type OperationName, requestsOf, type Stock } from './requests.ts';
import type { Serve, Stage } from './stage.ts';
import { usageOf } from './usage.ts';

/**
 * More than any endpoint answers here: requests that are played twice would be replays.
 */
const MOST_PER_SECOND = {
  activate: 14_000,
  update: 14_000,
  redeem: 30_000,
  till: 40_000,
  balance: 20_000,
  lookup: 20_000,
  list: 20_000,
};

/** The result of a run, and its cost: processor time for each request, memory at its end. */
export type Measured = Load & {
  readonly operation: OperationName;
  readonly connections: number;
  readonly serviceCpuUs: number;
  readonly databaseCpuUs: number;
  readonly serviceMb: number;
  readonly databaseMb: number;
};

export type Shape = { readonly connections: number; readonly seconds: number; readonly pauseMs?: number };

/** Makes references unique, even on a database that is used again. */
const RUN = `run-${Date.now().toString(36)}`;
let runs = 0;

/** How much of the stock a number of runs uses up. */
export function needOf(
  operations: readonly OperationName[],
  seconds: number,
): { inactive: number; updatable: number } {
  const need = (what: 'inactive' | 'updatable') =>
    operations.reduce((sum, name) => sum + OPERATIONS[name][what] * countFor(name, seconds), 0);
  return { inactive: Math.ceil(need('inactive')), updatable: Math.ceil(need('updatable')) };
}

function countFor(operation: OperationName, seconds: number): number {
  // One second is added for the beginning and the end of a run.
  return MOST_PER_SECOND[operation] * (seconds + 1);
}

/** Writes the requests of a run to a file, over those of an earlier run. @returns its path */
export async function prepare(
  stage: Stage,
  stock: Stock,
  operation: OperationName,
  seconds: number,
  name: string = operation,
): Promise<string> {
  const file = join(stage.folder, `${name}.requests`);
  const requests = requestsOf(operation, stock, `${RUN}-${++runs}`, countFor(operation, seconds));
  await pipeline(Readable.from(requests), createWriteStream(file, { mode: 0o600 }));
  return file;
}

/** Plays one run of an operation, and measures its cost. */
export async function measure(
  stage: Stage,
  serve: Serve,
  stock: Stock,
  operation: OperationName,
  shape: Shape,
): Promise<Measured> {
  const file = await prepare(stage, stock, operation, shape.seconds);
  const { result: load, ...cost } = await costOf(stage, serve, () =>
    play({ url: serve.url, file, ...shape }),
  );
  return {
    ...load,
    operation,
    connections: shape.connections,
    serviceCpuUs: microsEach(cost.serviceCpuMs, load.answered),
    databaseCpuUs: microsEach(cost.databaseCpuMs, load.answered),
    serviceMb: cost.serviceMb,
    databaseMb: cost.databaseMb,
  };
}

/** Processor time for each of some requests, in microseconds. */
export const microsEach = (ms: number, count: number) => (ms * 1000) / Math.max(1, count);

/** The cost of some work in service and database: processor time, and memory at its end. */
export async function costOf<Result>(stage: Stage, serve: Serve, work: () => Promise<Result>) {
  const look = () => Promise.all([usageOf(serve.pid), usageOf(stage.databasePid)]);
  const [serviceBefore, databaseBefore] = await look();
  const result = await work();
  const [service, database] = await look();
  return {
    result,
    serviceCpuMs: (service?.cpuMs ?? 0) - (serviceBefore?.cpuMs ?? 0),
    databaseCpuMs: (database?.cpuMs ?? 0) - (databaseBefore?.cpuMs ?? 0),
    serviceMb: service?.memoryMb ?? 0,
    databaseMb: database?.memoryMb ?? 0,
  };
}
