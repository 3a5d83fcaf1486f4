import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { createLogger } from '../src/log.ts';
import { newRingKey } from '../src/secrets.ts';
import type { Wanted } from './arguments.ts';
import { findPrograms, type Server, STANDBY_NAME, startCluster } from './cluster.ts';
import { Hooks } from './hooks.ts';
import { Load } from './load.ts';
import { freePort, Supervised } from './process.ts';
import { createMerchants, logFile, operatorOf, prove, report } from './prove.ts';
import { Random } from './random.ts';

/** Under load before and after the failover, in this part of the time each. */
const PART = 0.5;
const MINUTE_MS = 60_000;
/** What watches over a cluster takes a while to be sure that the primary is gone. */
const WATCHED_MS = 1_000;
const LOOK_MS = 10;

async function isSynchronous(primary: Server): Promise<void> {
  const owner = await openOwner(primary.url());
  const state = () =>
    owner.query(
      sql`select from pg_stat_replication where application_name = ${STANDBY_NAME} and sync_state in ('sync', 'quorum')`,
    );
  while ((await state()).length === 0) await sleep(LOOK_MS);
  await owner.close();
}

/** How long nobody is answered, from the moment of the call until a look-up of the database succeeds again. */
async function timeAway(service: Supervised): Promise<number> {
  const since = performance.now();
  let lost = false;
  for (;;) {
    const ready = (await fetch(`${service.baseUrl}/readyz`).catch(() => undefined))?.ok ?? false;
    if (!ready) lost = true;
    else if (lost) return performance.now() - since;
    await sleep(LOOK_MS);
  }
}

/** The primary is killed under load and the standby promoted: the service follows, and nothing acknowledged is lost. */
export async function soakFailover({ minutes, seed }: Wanted): Promise<void> {
  const programs = await findPrograms();
  if (!programs) {
    process.stdout.write('skipped: no PostgreSQL with pg_basebackup is installed below /usr/lib/postgresql\n');
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), 'scrip-failover-'));
  const [primary, standby] = await startCluster(programs, folder);
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
  const url = `postgres://postgres:soak@${hosts}/postgres?target_session_attrs=read-write`;
  const env = {
    SCRIP_DATABASE_URL: url,
    SCRIP_KEYS: newRingKey(),
    SCRIP_DATA_DIR: folder,
    SCRIP_LOG_LEVEL: 'warn',
    SOAK_LOG: logFile(folder),
    SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const services = [
    new Supervised('one', ['serve', '--processes', '1'], env, await freePort()),
    new Supervised('two', ['serve', '--processes', '1'], env, await freePort()),
  ] as const;
  await isSynchronous(primary);
  const { service, close } = await openService('scrip-soak', readConfig(env), createLogger('fatal'));
  const random = new Random(seed);
  const merchants = await createMerchants(service);
  const hooks = await Hooks.open(operatorOf(service), merchants, random.fork());
  try {
    const load = new Load(
      random.fork(),
      services.map(({ baseUrl }) => baseUrl),
      merchants,
    );
    for (const each of services) each.start();
    await Promise.all(services.map((each) => each.ready()));
    await load.prepare();
    await hooks.warn(operatorOf(service), merchants);
    load.start();
    await sleep(minutes * MINUTE_MS * PART);
    const killedAt = performance.now();
    await primary.kill();
    const away = timeAway(services[0]);
    await sleep(WATCHED_MS);
    await standby.promote();
    const promotedAt = performance.now();
    const awayMs = await away;
    const afterMs = Math.max(0, killedAt + awayMs - promotedAt);
    await sleep(minutes * MINUTE_MS * PART);
    await load.stop();
    await Promise.all(services.map((each) => each.ready()));
    const proof = await prove(service, url, { load, hooks, baseUrl: services[0].baseUrl });
    process.stdout.write(`away for ${Math.round(awayMs)} ms, of which ${Math.round(afterMs)} ms after the promotion\n`);
    await report(new Map([['primary killed, standby promoted', 1]]), load, proof, logFile(folder));
  } finally {
    await Promise.all(services.map((each) => each.stop()));
    await hooks.stop();
    await close();
    for (const server of [primary, standby]) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
