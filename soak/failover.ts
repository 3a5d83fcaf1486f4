import { setTimeout as sleep } from 'node:timers/promises';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { newRingKey } from '../src/keyring/file.ts';
import { createLogger } from '../src/log.ts';
import { MINUTE_MS } from '../src/time.ts';
import { opened, temporaryFolder } from '../test/support/leave-nothing.ts';
import type { Options } from './arguments.ts';
import { findPrograms, type Server, STANDBY_NAME, startCluster } from './cluster.ts';
import { Hooks } from './hooks.ts';
import { Load } from './load.ts';
import { freePort, Supervised } from './process.ts';
import { createMerchants, keepLog, operatorOf, print, prove, report } from './prove.ts';
import { Random } from './random.ts';

/** The part of the time under load before the failover, and after it. */
const PART = 0.5;
/** The time after which a cluster manager is sure that the primary is gone. */
const WATCHED_MS = 1_000;
/** How far an asynchronous standby is behind when the primary is lost. */
const BEHIND_MS = 300;
const LOOK_MS = 10;

/** Waits until the standby follows in the right mode. @returns the process id of its WAL sender */
async function sender(primary: Server, isAsync: boolean): Promise<number> {
  const owner = await openOwner(primary.url());
  const states = isAsync ? ['async'] : ['sync', 'quorum'];
  for (;;) {
    const [row] = await owner.query<{ pid: number }>(
      sql`select pid from pg_stat_replication
        where application_name = ${STANDBY_NAME} and state = 'streaming'
          and sync_state = any (${states}::text[])`,
    );
    if (row) return owner.close().then(() => row.pid);
    await sleep(LOOK_MS);
  }
}

/**
 * Kills the primary shortly after the standby has lost its connection, as when a network or a host goes
 * down.
 */
async function lose(primary: Server, isAsync: boolean): Promise<void> {
  const pid = await sender(primary, isAsync);
  process.kill(pid, 'SIGSTOP');
  await sleep(BEHIND_MS);
  await primary.kill();
}

/** The time from now until the service is ready again after it has been unready, in milliseconds. */
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

/**
 * The primary is killed under load and the standby is promoted: the service follows, and nothing acknowledged
 * is lost.
 */
export async function soakFailover({ minutes, seed, isAsync }: Options): Promise<void> {
  const programs = await findPrograms();
  if (!programs) {
    process.stdout.write(
      'skipped: no PostgreSQL with pg_basebackup is installed below /usr/lib/postgresql\n',
    );
    return;
  }
  const folder = await temporaryFolder('scrip-failover-');
  const [primary, standby] = await startCluster(programs, folder, isAsync);
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
  const url = `postgres://postgres:soak@${hosts}/postgres?target_session_attrs=read-write`;
  const env = {
    SCRIP_DATABASE_URL: url,
    SCRIP_KEYS: newRingKey(),
    SCRIP_DATA_DIR: folder,
    SCRIP_LOG_LEVEL: 'warn',
    SOAK_LOG: keepLog(folder),
    SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const services = [
    new Supervised('one', ['serve', '--processes', '1'], env, await freePort()),
    new Supervised('two', ['serve', '--processes', '1'], env, await freePort()),
  ] as const;
  await sender(primary, isAsync);
  const { service } = await opened(
    () => openService(readConfig(env), { name: 'scrip-soak', create: true, log: createLogger('fatal') }),
    ({ close }) => close(),
  );
  const random = new Random(seed);
  const merchants = await createMerchants(service);
  const hooks = await Hooks.open(operatorOf(service), merchants, random.fork());
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
  await opened(() => lose(primary, isAsync));
  const killedAt = performance.now();
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
  process.stdout.write(
    `away for ${Math.round(awayMs)} ms, of which ${Math.round(afterMs)} ms after the promotion\n`,
  );
  const faults = new Map([['fault: primary killed, standby promoted', 1]]);
  if (!isAsync) return await report(faults, load, proof, env.SOAK_LOG);
  print(faults, load, proof);
  const { lost } = proof.verdict;
  if (lost.length === 0) throw new Error('the asynchronous standby lost nothing by chance: run it again');
  process.stdout.write(
    `${lost.length} acknowledged calls are lost, as expected with an asynchronous standby\n`,
  );
}
