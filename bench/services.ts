import pg from 'pg';
import { authenticate } from '../src/api-keys/authenticate.ts';
import { createService, type Service } from '../src/context.ts';
import { openEmbedded } from '../src/db/embedded.ts';
import { openDatabase } from '../src/db/pool.ts';
import { createLogger } from '../src/log.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { temporaryFolder } from '../test/support/leave-nothing.ts';
import { pause } from './figures.ts';
import type { Voucher } from './requests.ts';
import { type Given, numberOf } from './scenario.ts';
import { Stage } from './stage.ts';

/** Tills of each process that wait for an answer at the same time. */
const CALLERS = [1, 4, 16];
const CONNECTIONS_MAX = 2_000;
const SAMPLE_MS = 200;
const IDLE_MS = 20_000;
const NAME = 'scrip-many';

type Counters = { readonly commits: number; readonly keyLookUps: number };

/** The counters of the server, without those of this connection. */
async function readCounters({ owner }: Stage): Promise<Counters> {
  await owner.query('select pg_stat_clear_snapshot()');
  const { rows } = await owner.query(
    `select xact_commit::float8 as commits,
      (select sum(idx_scan)::float8 from pg_stat_user_indexes where relname = 'api_keys') as "keyLookUps"
    from pg_stat_database where datname = current_database()`,
  );
  return rows[0];
}

async function countConnections({ owner }: Stage): Promise<number> {
  const { rows } = await owner.query(
    'select count(*)::int as count from pg_stat_activity where application_name = $1',
    [NAME],
  );
  return rows[0].count;
}

/** The most connections during some work. */
async function watch<T>(stage: Stage, work: Promise<T>): Promise<number> {
  let most = 0;
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    most = Math.max(most, await countConnections(stage));
    await pause(SAMPLE_MS);
  }
  await ended;
  return most;
}

let references = 0;

/** Tills at every process redeem, each for one of the merchants, up to a number of redemptions. */
async function play(
  services: readonly Service[],
  headers: readonly string[],
  vouchers: readonly Voucher[],
  callers: number,
  redemptions: number,
): Promise<void> {
  let left = redemptions;
  const till = async (service: Service) => {
    while (left-- > 0) {
      const at = ++references;
      const { context } = await authenticate(service, headers[at % headers.length]);
      const { code, pin } = vouchers[(at * 7_919) % vouchers.length] as Voucher;
      await redeem(context, { code, pin, amount: 0.01, reference: `many-${at}` });
    }
  };
  await Promise.all(services.flatMap((service) => Array.from({ length: callers }, () => till(service))));
}

/** A stage whose server has room for the connections of all processes. */
async function openStage(): Promise<Stage> {
  const folder = await temporaryFolder('scrip-bench-');
  const embedded = await openEmbedded(folder, createLogger('warn'));
  const owner = new pg.Client({ connectionString: embedded.ownerUrl });
  await owner.connect();
  await owner.query(`alter system set max_connections = ${CONNECTIONS_MAX}`);
  await owner.end();
  await embedded.release();
  return Stage.open(folder);
}

/**
 * The work of one database for a hundred processes. Each is a service in this process, with its own
 * connections, batcher and cache of keys. The figures are counts, not times, so that a shared machine does
 * not matter: connections, transactions for each redemption, and look-ups of keys.
 */
export async function run(given: Given): Promise<void> {
  const [processes, redemptions] = [numberOf(given, 'processes'), numberOf(given, 'redemptions')];
  const stage = await openStage();
  const serve = await stage.serve();
  const { vouchers } = await stage.stock(0, 0);
  const headers: string[] = [];
  for (let count = 0; count < numberOf(given, 'merchants'); count++)
    headers.push(await stage.anotherMerchant());
  await serve.stop();
  const { service } = stage.context;
  const services = Array.from({ length: processes }, () => {
    const db = openDatabase(stage.embedded.url, NAME);
    return createService({ ...service, db, readDb: db });
  });
  console.info(`${processes} processes, ${headers.length} merchants, ${redemptions} redemptions a row`);
  const table: Record<string, Record<string, number>> = {};
  for (const callers of CALLERS) {
    const before = await readCounters(stage);
    const connections = await watch(stage, play(services, headers, vouchers, callers, redemptions));
    // Backends report what they have counted once a second.
    await pause(2_000);
    const after = await readCounters(stage);
    table[`${callers} tills each`] = {
      connections,
      'transactions a redemption': (after.commits - before.commits) / redemptions,
      'key look-ups a redemption': (after.keyLookUps - before.keyLookUps) / redemptions,
    };
  }
  await pause(IDLE_MS);
  const before = await readCounters(stage);
  await pause(IDLE_MS);
  const after = await readCounters(stage);
  table['without calls'] = {
    connections: await countConnections(stage),
    'transactions a second': (after.commits - before.commits) / (IDLE_MS / 1_000),
  };
  console.table(table);
  await Promise.all(services.map(({ db }) => db.close()));
}
