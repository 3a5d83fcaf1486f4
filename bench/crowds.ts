import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { end, started } from '../test/support/leave-nothing.ts';
import { CROWDS, type CrowdName } from './crowd.ts';
import { prepare } from './measure.ts';
import { playOpen } from './play.ts';
import type { Stage } from './stage.ts';
import { usageOf } from './usage.ts';

/** Redemptions alone, and beside crowds of connections that send nothing or too much (crowd.ts). */

const CROWD = fileURLToPath(new URL('./crowd.ts', import.meta.url));
const HONEST = 32;
const WARM_UP_SECONDS = 2;

export type CrowdsResult = readonly {
  readonly name: string;
  readonly honest: {
    readonly perSecond: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
    readonly p999Ms: number;
  };
  readonly crowdCores: number;
  readonly broken: number;
  readonly memoryMb: number;
}[];

export async function measureCrowds(stage: Stage, seconds: number): Promise<CrowdsResult> {
  const serve = await stage.serve();
  const all: CrowdsResult[number][] = [];
  try {
    const stock = await stage.stock(0, 0);
    const redeem = async (lasts: number) => {
      const file = await prepare(stage, stock, 'redeem', lasts);
      return playOpen({ url: serve.url, file, connections: HONEST, seconds: lasts });
    };
    await redeem(WARM_UP_SECONDS);
    for (const name of [undefined, ...(Object.keys(CROWDS) as CrowdName[]), undefined]) {
      const crowd = name && (await gatherCrowd(serve.url, name));
      const cpu = async () => (crowd?.pid === undefined ? 0 : ((await usageOf(crowd.pid))?.cpuMs ?? 0));
      const before = await cpu();
      const load = await redeem(seconds);
      const crowdCores = ((await cpu()) - before) / 1000 / load.seconds;
      const memoryMb = (await usageOf(serve.pid))?.memoryMb ?? 0;
      if (crowd) await end(crowd);
      const { count, ...times } = load.accepted;
      const broken = load.broken + load.refused.count;
      const result = {
        name: name ? CROWDS[name].name : 'nobody',
        honest: { perSecond: count / load.seconds, ...times },
        crowdCores,
        broken,
        memoryMb,
      };
      all.push(result);
      const { perSecond, p50Ms, p99Ms, p999Ms } = result.honest;
      process.stdout.write(
        `beside ${result.name}: ${Math.round(perSecond)}/s, p50 ${p50Ms.toFixed(2)}, p99 ${p99Ms.toFixed(1)}, p99.9 ${p999Ms.toFixed(1)} ms, failed ${broken}; the crowd took ${crowdCores.toFixed(2)} cores; ${Math.round(memoryMb)} MB\n`,
      );
    }
    if (all.some(({ broken }) => broken > 0)) process.exitCode = 1;
    return all;
  } finally {
    await serve.stop();
  }
}

/** Starts a crowd, and waits until all of its connections are open. */
async function gatherCrowd(url: string, name: CrowdName): Promise<ChildProcess> {
  const crowd = started(() => fork(CROWD, [url, name]));
  await once(crowd, 'message');
  return crowd;
}
