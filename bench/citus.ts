import { readFileSync } from 'node:fs';
import { any, openService, prepare } from '../soak/citus.load.ts';
import type { Server } from '../soak/cluster.ts';
import { distribute } from '../src/db/distribute.ts';
import { migrate } from '../src/db/migrate.ts';
import { newKeyRing } from '../src/keyring/file.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { activate } from '../src/vouchers/activate.ts';
import { createOnAll, execute, startCitus } from '../test/citus/cluster.ts';
import { temporaryFolder } from '../test/support/leave-nothing.ts';
import { print, table } from './figures.ts';
import { type Given, numberOf } from './scenario.ts';
import { usageOf } from './usage.ts';

const CALLERS = [1, 16, 64, 256, 1_024];
/** So many that callers rarely want the same one at once, as at tills. */
const CARDS = 5_000;
/** Those who activate vouchers that one float pays for, and how many vouchers they share. */
const ACTIVATING = [1, 16, 64];
const INACTIVE = 1_500;
const WARM_MS = 2_000;

/** Processor time of the processes of servers so far. */
async function cpuMs(servers: readonly Server[]): Promise<number> {
  const used = servers.map(({ data }) =>
    usageOf(Number(readFileSync(`${data}/postmaster.pid`, 'utf8').split('\n')[0])),
  );
  return (await Promise.all(used)).reduce((sum, usage) => sum + (usage?.cpuMs ?? 0), 0);
}

type Figures = {
  /** For each number of callers: redemptions a second, and the processor time of one. */
  readonly redemptions: readonly (readonly [string, string, string])[];
  /** For each number of callers: activations a second. */
  readonly activations: readonly number[];
};

async function measure(url: string, servers: readonly Server[], seconds: number): Promise<Figures> {
  const service = await openService(url, newKeyRing());
  const { contextOf, cards, inactive } = await prepare(service, CARDS, INACTIVE);
  const context = contextOf(service);
  let references = 0;
  const redemptions: [string, string, string][] = [];
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
    redemptions.push([String(callers), String(Math.round(count / seconds)), String(Math.round(micros))]);
  }
  const activations: number[] = [];
  for (const [at, callers] of ACTIVATING.entries()) {
    const share = INACTIVE / ACTIVATING.length;
    const left = inactive.slice(at * share, (at + 1) * share);
    const startedAt = performance.now();
    const until = startedAt + seconds * 1_000;
    const caller = async () => {
      for (let card = left.pop(); card && performance.now() < until; card = left.pop())
        await activate(
          { ...context, now: new Date() },
          {
            voucher: { serialNumber: Number(card.serialNumber) },
            value: 5,
            reference: `a${card.serialNumber}`,
          },
        );
    };
    await Promise.all(Array.from({ length: callers }, caller));
    activations.push(((share - left.length) * 1_000) / (performance.now() - startedAt));
  }
  await service.db.close();
  return { redemptions, activations };
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
  const rows = one.redemptions.map(([callers, rate, micros], at) => {
    const [, rateOver = '', microsOver = ''] = over.redemptions[at] ?? [];
    return [callers, rate, micros, rateOver, microsOver, (Number(microsOver) / Number(micros)).toFixed(1)];
  });
  const head = ['callers', 'one server/s', 'CPU µs', 'Citus/s', 'CPU µs', '×'];
  print(table(head, rows));
  const activated = ACTIVATING.map((callers, at) =>
    [callers, one.activations[at] ?? 0, over.activations[at] ?? 0].map((each) => String(Math.round(each))),
  );
  print(table(['callers of one merchant', 'activations on one server/s', 'on Citus/s'], activated));
}
