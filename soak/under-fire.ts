import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import { openEmbedded } from '../src/db/embedded.ts';
import { openOwner } from '../src/db/pool.ts';
import { createLogger } from '../src/log.ts';
import { MINUTE_MS } from '../src/time.ts';
import { atEnd, opened, temporaryFolder } from '../test/support/leave-nothing.ts';
import { openWay } from '../test/support/way.ts';
import type { Options } from './arguments.ts';
import { Disk } from './disk.ts';
import { ABSENCES, FAULTS, mendDisk, type Stand } from './faults.ts';
import { Hooks } from './hooks.ts';
import { Load } from './load.ts';
import { freePort, Supervised } from './process.ts';
import { createMerchants, keepLog, operatorOf, prove, report } from './prove.ts';
import { Random } from './random.ts';

/** The mean pause between two faults. A third of them begin during another one. */
const PAUSE_MS = 2_500;

/** Runs faults, some of them concurrent, until the time is over. @returns the number of each */
async function injure(stand: Stand, untilMs: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const under: Promise<void>[] = [];
  // Each kind comes once in every round, in random order.
  const faults = FAULTS.filter(({ needsDisk }) => !needsDisk || stand.disk);
  let round = [...faults];
  while (performance.now() < untilMs) {
    if (round.length === 0) round = [...faults];
    const [fault] = round.splice(stand.random.below(round.length), 1);
    if (!fault) continue;
    const count = (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1);
    const run = opened(() => fault.run(stand)).then(
      () => count(`fault: ${fault.name}`),
      // The database can be away when a fault needs it. Then the fault did not happen, and is counted so.
      (error: Error) => count(`no fault: ${fault.name} (${error.message})`),
    );
    under.push(run);
    if (stand.random.below(3) > 0) await run;
    await sleep(stand.random.below(2 * PAUSE_MS));
  }
  await Promise.all(under);
  await mend(stand);
  return new Map([...counts, ...[...stand.seen].map(([name, most]) => [`seen: ${name}`, most] as const)]);
}

/** Repairs everything. */
async function mend({ way, disk, hooks, services, worker, ownerUrl }: Stand): Promise<void> {
  way.set('open');
  for (const each of [...services, worker]) each.setClock(0);
  await disk?.empty();
  await hooks.set('well');
  for (const service of services) service.signal('SIGCONT');
  await mendDisk(ownerUrl);
}

/**
 * Makes the database go away and come back in every way, one after the other.
 * @returns the longest times until a call succeeded
 */
async function absent(stand: Stand, untilMs: number, load: Load): Promise<Map<string, number>> {
  const longest = new Map<string, number>();
  do {
    for (const fault of FAULTS.filter(({ name }) => ABSENCES.includes(name))) {
      await load.nextSuccess();
      await opened(() => fault.run(stand));
      if (fault.name === 'database killed') await isUp(stand);
      const backAt = performance.now();
      const note = (event: string) => () => {
        const label = `${fault.name}: ms until ${event}`;
        longest.set(label, Math.max(longest.get(label) ?? 0, Math.round(performance.now() - backAt)));
      };
      await Promise.all([
        load.nextSuccess().then(note('a call succeeded')),
        load.nextOfEach().then(note('every merchant could redeem and generate')),
      ]);
      await sleep(PAUSE_MS);
    }
  } while (performance.now() < untilMs);
  return longest;
}

/** Waits until the database accepts connections. */
async function isUp({ ownerUrl }: Stand): Promise<void> {
  for (;;) {
    const owner = await openOwner(ownerUrl).catch(() => undefined);
    if (owner) return owner.close();
    await sleep(10);
  }
}

/** Measures how long the service stays away after the database is back: the longest time of each kind. */
export function soakAbsences(options: Options): Promise<void> {
  return soak(options, absent);
}

export function soakFaults(options: Options): Promise<void> {
  return soak(options, injure);
}

/** Breaks everything under load, again and again, and then compares the books with every answer. */
async function soak({ minutes, seed }: Options, run: typeof absent | typeof injure): Promise<void> {
  const random = new Random(seed);
  const folder = await temporaryFolder('scrip-soak-');
  const log = createLogger('fatal');
  const disk = await Disk.mount(folder);
  if (!disk) process.stdout.write('skipped: a real full disk, since this account may not mount one\n');
  // This process runs the database, and starts it again after it was killed.
  const embedded = await opened(
    () => openEmbedded(folder, log),
    ({ release }) => release(),
  );
  const { service } = await opened(
    () => openService(readConfig({ SCRIP_DATA_DIR: folder }), { name: 'scrip-soak', create: true, log }),
    ({ close }) => close(),
  );
  const way = await openWay(embedded.url);
  const env = {
    SCRIP_DATABASE_URL: way.url,
    SCRIP_KEYS: (await readFile(join(folder, 'keys'), 'utf8')).trim(),
    SCRIP_DATA_DIR: folder,
    SCRIP_LOG_LEVEL: 'warn',
    SOAK_LOG: keepLog(folder),
    SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const merchants = await createMerchants(service);
  const hooks = await Hooks.open(operatorOf(service), merchants, random.fork());
  const services = [1, 2].map(
    async (n) => new Supervised(`service ${n}`, ['serve', '--no-work'], env, await freePort()),
  );
  const stand: Stand = {
    folder,
    ownerUrl: embedded.ownerUrl,
    way,
    services: await Promise.all(services),
    worker: new Supervised('worker', ['work'], env),
    hooks,
    disk,
    random,
    crowd: (count) => load.crowd(count),
    seen: new Map(),
  };
  // A run that is stopped in the middle of a fault stops its services in order too.
  atEnd(() => mend(stand));
  const baseUrls = stand.services.map(({ baseUrl }) => baseUrl);
  const load = new Load(random.fork(), baseUrls, merchants);
  for (const each of [...stand.services, stand.worker]) each.start();
  await Promise.all(stand.services.map((each) => each.ready()));
  await load.prepare();
  await hooks.warn(operatorOf(service), merchants);
  load.start();
  const faults = await run(stand, performance.now() + minutes * MINUTE_MS, load);
  await load.stop();
  await Promise.all(stand.services.map((each) => each.ready()));
  const proof = await prove(service, embedded.ownerUrl, { load, hooks, baseUrl: baseUrls[0] as string });
  await report(faults, load, proof, env.SOAK_LOG);
}
