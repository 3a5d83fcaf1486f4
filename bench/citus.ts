import { readFileSync } from 'node:fs';
import { any, openService, prepare } from '../soak/citus.load.ts';
import type { Server } from '../soak/cluster.ts';
import { distribute } from '../src/db/distribute.ts';
import { migrate } from '../src/db/migrate.ts';
import { newKeyRing } from '../src/keyring/file.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { createOnAll, execute, startCitus } from '../test/citus/cluster.ts';
import { temporaryFolder } from '../test/support/leave-nothing.ts';
import { print, table } from './figures.ts';
import { type Given, numberOf } from './scenario.ts';
import { usageOf } from './usage.ts';

const CALLERS = [1, 16, 64, 256, 1_024];
const CARDS = 500;
const WARM_MS = 2_000;

/** Processor time of the processes of servers so far. */
async function cpuMs(servers: readonly Server[]): Promise<number> {
  const used = servers.map(({ data }) =>
    usageOf(Number(readFileSync(`${data}/postmaster.pid`, 'utf8').split('\n')[0])),
  );
  return (await Promise.all(used)).reduce((sum, usage) => sum + (usage?.cpuMs ?? 0), 0);
}

async function measure(url: string, servers: readonly Server[], seconds: number): Promise<string[][]> {
  const service = await openService(url, newKeyRing());
  const { contextOf, cards } = await prepare(service, CARDS, 0);
  const context = contextOf(service);
  let references = 0;
  const rows: string[][] = [];
  for (const callers of CALLERS) {
    let count = 0;
    const during = async (ms: number) => {
      const until = performance.now() + ms;
      const caller = async () => {
        while (performance.now() < until) {
          const request = { ...any(cards), amount: 0.01, reference: `b${++references}` };
          await redeem({ ...context, now: new Date() }, request);
          count++;
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
    };
    await during(WARM_MS);
    count = 0;
    const before = await cpuMs(servers);
    await during(seconds * 1_000);
    const micros = (((await cpuMs(servers)) - before) * 1_000) / count;
    rows.push([String(callers), String(Math.round(count / seconds)), String(Math.round(micros))]);
  }
  await service.db.close();
  return rows;
}

export async function run(given: Given): Promise<void> {
  const seconds = numberOf(given, 'seconds');
  const cluster = await startCitus(await temporaryFolder('scrip-bench-'));
  const { coordinator, workers } = cluster;
  await execute(coordinator, 'postgres', 'create database one');
  await migrate(coordinator.url(undefined, 'one'));
  await createOnAll(cluster, 'many');
  const many = coordinator.url(undefined, 'many');
  await migrate(many);
  await distribute(many, numberOf(given, 'buckets'));
  const one = await measure(coordinator.url(undefined, 'one'), [coordinator], seconds);
  const over = await measure(many, [coordinator, ...workers], seconds);
  const rows = one.map(([callers = '', rate = '', micros = ''], at) => {
    const [, rateOver = '', microsOver = ''] = over[at] ?? [];
    return [callers, rate, micros, rateOver, microsOver, (Number(microsOver) / Number(micros)).toFixed(1)];
  });
  const head = ['callers', 'one server/s', 'CPU µs', 'Citus/s', 'CPU µs', '×'];
  print(table(head, rows));
}
