/**
 * `node bench/citus.ts [SECONDS] [BUCKETS]`: processor time of the database for a redemption, on one server
 * and on a Citus cluster, with few callers and with many. Both run the same calls on this machine, in turns.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { any, openService, prepare } from '../soak/citus.load.ts';
import type { Server } from '../soak/cluster.ts';
import { distribute } from '../src/db/distribute.ts';
import { migrate } from '../src/db/migrate.ts';
import { newKeyRing } from '../src/keyring/file.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { createOnAll, execute, startCitus } from '../test/citus/cluster.ts';
import { leavingNothing, temporaryFolder } from '../test/support/leave-nothing.ts';
import { table } from './table.ts';

const CALLERS = [1, 16, 64, 256, 1_024];
const BUCKETS_DEFAULT = 2;
const CARDS = 500;
const WARM_MS = 2_000;
/** The tick of the kernel's clock that counts processor time. */
const TICK_MS = 10;

/** Processor time of a server's processes so far. Those that have ended count for their parent. */
function cpuMs(servers: readonly Server[]): number {
  const parents = new Set(
    servers.map(({ data }) => readFileSync(`${data}/postmaster.pid`, 'utf8').split('\n')[0]),
  );
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      const own = Number(fields[11]) + Number(fields[12]);
      if (parents.has(pid)) ticks += own + Number(fields[13]) + Number(fields[14]);
      else if (parents.has(fields[1] as string)) ticks += own;
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks * TICK_MS;
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
    const before = cpuMs(servers);
    await during(seconds * 1_000);
    const micros = ((cpuMs(servers) - before) * 1_000) / count;
    rows.push([String(callers), String(Math.round(count / seconds)), String(Math.round(micros))]);
  }
  await service.db.close();
  return rows;
}

await leavingNothing(async () => {
  const seconds = Number(process.argv[2] ?? 8);
  const cluster = await startCitus(await temporaryFolder('scrip-bench-'));
  const { coordinator, workers } = cluster;
  await execute(coordinator, 'postgres', 'create database one');
  await migrate(coordinator.url(undefined, 'one'));
  await createOnAll(cluster, 'many');
  const many = coordinator.url(undefined, 'many');
  await migrate(many);
  await distribute(many, Number(process.argv[3] ?? BUCKETS_DEFAULT));
  const one = await measure(coordinator.url(undefined, 'one'), [coordinator], seconds);
  const over = await measure(many, [coordinator, ...workers], seconds);
  const rows = one.map(([callers = '', rate = '', micros = ''], at) => {
    const [, rateOver = '', microsOver = ''] = over[at] ?? [];
    return [callers, rate, micros, rateOver, microsOver, (Number(microsOver) / Number(micros)).toFixed(1)];
  });
  const head = ['callers', 'one server/s', 'CPU µs', 'Citus/s', 'CPU µs', '×'];
  process.stdout.write(`${table(head, rows)}\n`);
});
process.exit();
