import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import type { Service } from '../src/context.ts';
import { openEmbedded } from '../src/db/embedded.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { createLogger } from '../src/log.ts';
import { createMerchant } from '../src/merchants/merchants.ts';
import { openWay } from '../test/way.ts';
import type { Wanted } from './arguments.ts';
import { FAULTS, mendDisk, type Stand } from './faults.ts';
import { Load, type Merchant } from './load.ts';
import { freePort, Supervised } from './process.ts';
import { Random } from './random.ts';
import { type Verdict, verify, verifyBalances, verifyBooks } from './verify.ts';

const MERCHANTS = 3;
const FLOAT_MINOR = 1_000_000_000_00n;
const MINUTE_MS = 60_000;
/** Between two faults; a third of them come while another one lasts. */
const PAUSE_MS = 2_500;
const BATCH_TRIES = 600;

export async function createMerchants(service: Service): Promise<Merchant[]> {
  const merchants: Merchant[] = [];
  for (let number = 1; number <= MERCHANTS; number++) {
    const { id, keyId, secret } = await createMerchant(
      { service, actor: { name: 'soak', origin: 'soak', reason: null } },
      {
        name: `Soak ${number}`,
        permit: ['update-redemption'],
        opaque: false,
        productId: 1,
        float: { currency: 'USD', amountMinor: FLOAT_MINOR },
      },
    );
    merchants.push({ id, authorization: `Basic ${btoa(`${keyId}:${secret}`)}` });
  }
  return merchants;
}

/** Faults one after the other and over each other, until the time is over; how many of each there were. */
async function injure(stand: Stand, untilMs: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const under: Promise<void>[] = [];
  // Each kind comes once in every round, in an order of its own.
  let round = [...FAULTS];
  while (performance.now() < untilMs) {
    if (round.length === 0) round = [...FAULTS];
    const [fault] = round.splice(stand.random.below(round.length), 1);
    if (!fault) continue;
    const run = fault.run(stand).then(
      () => void counts.set(fault.name, (counts.get(fault.name) ?? 0) + 1),
      // The database can be away just when a fault needs it: then it did not happen, and is not counted.
      () => {},
    );
    under.push(run);
    if (stand.random.below(3) > 0) await run;
    await sleep(stand.random.below(2 * PAUSE_MS));
  }
  await Promise.all(under);
  stand.way.set('open');
  for (const service of stand.services) service.signal('SIGCONT');
  await mendDisk(stand.ownerUrl);
  return counts;
}

/** Until no batch is under way any more: whatever crashed, the worker goes on with it. */
export async function batchesEnded(owner: Awaited<ReturnType<typeof openOwner>>): Promise<void> {
  for (let tries = 0; tries < BATCH_TRIES; tries++) {
    const [row] = await owner.query<{ left: number }>(
      sql`select count(*)::int as left from scrip.batches where status = 'PROCESSING'`,
    );
    if (row?.left === 0) return;
    await sleep(100);
  }
}

/** Prints what there was, and what came of it; throws where something was lost, doubled or does not fit. */
export function report(faults: ReadonlyMap<string, number>, load: Load, verdict: Verdict): void {
  const table = new Table({ style: { head: [], border: [] }, colAligns: ['left', 'right'] });
  for (const [name, count] of faults) table.push([`fault: ${name}`, count]);
  table.push(
    ['requests', load.requests],
    ['references', load.sent.length],
    ['acknowledged', verdict.acknowledged],
    ['unanswered', verdict.unanswered],
    ['of these, had happened', verdict.happened],
    ['lost', verdict.lost.length],
    ['doubled', verdict.doubled.length],
    ['answers of a bug (500)', load.faulty.length],
    ['wrong otherwise', verdict.wrong.length],
  );
  process.stdout.write(`${table.toString()}\n`);
  const found = [...verdict.lost, ...verdict.doubled, ...load.faulty, ...verdict.wrong];
  if (found.length > 0) throw new Error(`not as it must be:\n${found.slice(0, 20).join('\n')}`);
}

/** Everything breaks under load, over and over; then the books are held against every answer given. */
export async function soakFaults({ minutes, seed }: Wanted): Promise<void> {
  const random = new Random(seed);
  const folder = await mkdtemp(join(tmpdir(), 'scrip-soak-'));
  const log = createLogger('fatal');
  // This process holds the database, and starts it again when it was killed.
  const embedded = await openEmbedded(folder, log);
  const config = readConfig({ SCRIP_DATA_DIR: folder });
  const { service, close } = await openService('scrip-soak', config, log);
  const way = await openWay(embedded.serviceUrl);
  const keys = (await readFile(join(folder, 'keys'), 'utf8')).trim();
  const env = { SCRIP_DATABASE_URL: way.url, SCRIP_KEYS: keys, SCRIP_DATA_DIR: folder, SCRIP_LOG_LEVEL: 'silent' };
  const services = [1, 2].map(
    async (n) => new Supervised(`service ${n}`, ['serve', '--no-work'], env, await freePort()),
  );
  const stand = {
    folder,
    ownerUrl: embedded.ownerUrl,
    way,
    services: await Promise.all(services),
    worker: new Supervised('worker', ['work'], env),
    random,
  };
  const all = [...stand.services, stand.worker];
  try {
    const load = new Load(
      random.fork(),
      stand.services.map(({ baseUrl }) => baseUrl),
      await createMerchants(service),
    );
    for (const each of all) each.start();
    await Promise.all(stand.services.map((each) => each.ready()));
    await load.prepare();
    load.start();
    const faults = await injure(stand, performance.now() + minutes * MINUTE_MS);
    await load.stop();
    await Promise.all(stand.services.map((each) => each.ready()));
    const owner = await openOwner(embedded.ownerUrl);
    await batchesEnded(owner);
    const verdict = await verify(load.sent, owner, (stand.services[0] as Supervised).baseUrl);
    await batchesEnded(owner);
    await verifyBalances(load.sent, owner, verdict.wrong);
    await verifyBooks(owner, service.db, verdict.wrong);
    await owner.close();
    report(faults, load, verdict);
  } finally {
    await Promise.all(all.map((each) => each.stop()));
    way.close();
    await close();
    await embedded.release();
    await rm(folder, { recursive: true, force: true });
  }
}
