import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { started } from '../test/support/leave-nothing.ts';
import type { BatchLoad, BatchPlan } from './batch-load.ts';
import type { OpenLoad, OpenPlan } from './open-load.ts';

/** One run of the load generator. */
export type LoadPlan = {
  readonly url: string;
  /** The requests (requests.ts). */
  readonly file: string;
  readonly connections: number;
  readonly seconds: number;
  /**
   * The mean pause before each request of a connection, for less than the greatest load. Needs wrk.
   */
  readonly pauseMs?: number;
};

export type Load = {
  /** Answered with success. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Not answered, or not with success. */
  readonly failed: number;
  readonly answered: number;
};

const BATCHES = fileURLToPath(new URL('./batch-load.ts', import.meta.url));
const OPEN = fileURLToPath(new URL('./open-load.ts', import.meta.url));
const WRK = fileURLToPath(new URL('./wrk.lua', import.meta.url));

/** Two, as for pgbench: one is not enough to keep a fast endpoint busy. */
const MOST_THREADS = 2;

/** The generator: wrk if it is installed, since it takes the least time from the service. */
const HAS_WRK = !spawnSync('wrk', ['--version']).error;
export const GENERATOR = HAS_WRK ? 'wrk' : 'clients in Node';

/** Clients at half load: enough that a client that waits does not delay the others. */
const HALF_CONNECTIONS = 64;

/**
 * The clients at half of the greatest load. Only wrk can pause: without it, there are few.
 * @param perSecond the greatest load
 */
export const halfOf = (perSecond: number) =>
  HAS_WRK
    ? { connections: HALF_CONNECTIONS, pauseMs: (HALF_CONNECTIONS / (perSecond / 2)) * 1000 }
    : { connections: 2 };

/** Runs the load. @returns its figures */
export async function play(plan: LoadPlan): Promise<Load> {
  if (!HAS_WRK) {
    const { accepted, refused, broken, seconds: took } = await playOpen(plan);
    const { count, ...times } = accepted;
    const failed = broken + refused.count;
    return { ...times, perSecond: count / took, failed, answered: count + refused.count };
  }
  const { url, file, connections, seconds, pauseMs = 0 } = plan;
  const threads = Math.min(MOST_THREADS, connections);
  const shape = ['-t', String(threads), '-c', String(connections), '-d', `${seconds}s`, '--timeout', '30s'];
  return runLoad('wrk', [...shape, '-s', WRK, url, '--', file, String(threads), String(pauseMs)]);
}

/** Runs an open load, or one in which each client waits only for its own answers. */
export function playOpen(plan: OpenPlan): Promise<OpenLoad> {
  return runLoad(process.execPath, [OPEN, JSON.stringify(plan)]);
}

/** Runs a load of merchants that order or download batches, each one after the other. */
export function playBatches(plan: BatchPlan): Promise<BatchLoad> {
  return runLoad(process.execPath, [BATCHES, JSON.stringify(plan)]);
}

function runLoad<Result>(command: string, args: readonly string[]): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = started(() => spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] }));
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      const line = text.trim().split('\n').at(-1) ?? '';
      if (code === 0 && line.startsWith('{')) resolve(JSON.parse(line) as Result);
      else reject(new Error(`the load ended with status ${code}: ${text}`));
    });
  });
}
