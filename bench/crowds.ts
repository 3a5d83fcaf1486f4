import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { end, started } from '../test/support/leave-nothing.ts';
import { CROWDS, type CrowdName } from './crowd.ts';
import { print, type Rate, textOf, whole } from './figures.ts';
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
  readonly honest: Rate;
  readonly crowdCores: number;
  readonly broken: number;
  readonly memoryMb: number;
}[];

export async function measureCrowds(stage: Stage, seconds: number): Promise<CrowdsResult> {
  const serve = await stage.serve();
  const all: CrowdsResult[number][] = [];
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
    print(
      `beside ${result.name}: ${textOf(result.honest)}, failed ${broken}; the crowd took ${crowdCores.toFixed(2)} cores; ${whole(memoryMb)} MB`,
    );
  }
  if (all.some(({ broken }) => broken > 0)) process.exitCode = 1;
  await serve.stop();
  return all;
}

/** Starts a crowd, and waits until all of its connections are open. */
async function gatherCrowd(url: string, name: CrowdName): Promise<ChildProcess> {
  const crowd = started(() => fork(CROWD, [url, name]));
  await once(crowd, 'message');
  return crowd;
}
