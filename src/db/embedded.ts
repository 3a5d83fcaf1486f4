import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../log.ts';
import { isUnavailable, SERVICE_ROLE, sqlState } from './pool.ts';
import {
  type Cluster,
  createCluster,
  findPostmaster,
  type Launcher,
  OWNER,
  prepareLauncher,
  readCluster,
  startPostmaster,
  stopPostmaster,
} from './postmaster.ts';
import { StartError } from './start-error.ts';

/** The embedded database, in use by this process. */
export type Embedded = {
  /** For migrations: may do everything. */
  readonly ownerUrl: string;
  /** For the service. */
  readonly serviceUrl: string;
  /** Ends the use. Whoever is the last to use the database stops it. */
  release(): Promise<void>;
};

const DATABASE = 'scrip';
/** Held, shared, by every process that uses the database: who gets it alone may stop it. */
const USERS_LOCK = 7311990002;
/** A first start takes about a second, one after a crash as long as replaying its journal does. */
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
const POLL_MS = 20;

/**
 * Uses the embedded database of a data folder: makes it where there is none, starts it where it does not run, and joins it
 * where it does, be it another process's or one that a killed process has left behind.
 * @throws StartError, one clear line, where that cannot be
 */
export async function openEmbedded(dataDir: string, log: Logger): Promise<Embedded> {
  const folder = resolve(dataDir);
  await claimFolder(folder);
  const launcher = await prepareLauncher(folder);
  const pgdata = join(folder, 'postgres');
  let releasing = false;
  const hold = async (): Promise<pg.Client> => {
    const client = await joinServer(launcher, pgdata, join(folder, 'postgres.log'));
    client.once('end', () => {
      if (releasing) return;
      log.warn('the embedded database has gone: starting it again');
      held = hold();
      held.catch((error: Error) => log.fatal({ error: error.message }, 'the embedded database does not start again'));
    });
    return client;
  };
  let held = hold();
  await held;
  const cluster = (await readCluster(pgdata)) as Cluster;
  return {
    ownerUrl: address(OWNER, cluster.ownerPassword, cluster.port, DATABASE),
    serviceUrl: address(SERVICE_ROLE, cluster.servicePassword, cluster.port, DATABASE),
    async release() {
      if (releasing) return;
      releasing = true;
      await leave(await held, pgdata);
    },
  };
}

/** The address of a data folder's database, running or not; undefined where there is none yet. */
export async function findServiceUrl(dataDir: string): Promise<string | undefined> {
  const pgdata = join(resolve(dataDir), 'postgres');
  const cluster = await readCluster(pgdata);
  return cluster && address(SERVICE_ROLE, cluster.servicePassword, findPostmaster(pgdata)?.port ?? cluster.port, DATABASE);
}

function address(user: string, password: string, port: number, database: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
}

/** Makes the data folder, or makes sure that the one that is there is ours. */
async function claimFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const reason = code === 'EEXIST' || code === 'ENOTDIR' ? 'there is a file in its place' : `it cannot be made (${code})`;
    throw new StartError(`the data folder ${folder} cannot be used: ${reason} (SCRIP_DATA_DIR)`);
  }
  const { uid } = await stat(folder);
  const own = process.getuid?.();
  if (own !== undefined && uid !== own) {
    throw new StartError(`the data folder ${folder} belongs to another user (${uid}): start Scrip as that user, or set SCRIP_DATA_DIR`);
  }
}

/** Connects to the running server and holds the lock of its users, starting the server as often as it takes. */
async function joinServer(launcher: Launcher, pgdata: string, logFile: string): Promise<pg.Client> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  let ended: (() => string | undefined) | undefined;
  for (;;) {
    if (!existsSync(join(pgdata, 'PG_VERSION'))) await createCluster(launcher, pgdata);
    const cluster = (await readCluster(pgdata)) as Cluster;
    const server = findPostmaster(pgdata);
    const reason = ended?.();
    if (server?.ready) {
      const client = await connect(cluster, server.port);
      if (client) return client;
    } else if (!server && (!ended || reason !== undefined)) {
      // One that did not start because another one did just then is no failure: that one is found in the next round.
      if (reason !== undefined && !/postmaster\.pid|in use/.test(reason)) {
        throw new StartError(`the embedded database does not start: ${reason} (see ${logFile})`);
      }
      ended = await startPostmaster(launcher, pgdata, cluster, logFile);
    }
    if (Date.now() > deadline) throw new StartError(`the embedded database does not get ready (see ${logFile})`);
    await sleep(POLL_MS);
  }
}

/** One connection that says "in use"; undefined where the server is just starting or stopping. */
async function connect(cluster: Cluster, port: number): Promise<pg.Client | undefined> {
  const client = new pg.Client({
    connectionString: address(OWNER, cluster.ownerPassword, port, 'postgres'),
    application_name: 'scrip-in-use',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    // Waits for one that is about to stop the server; the stop then ends this connection, and the next round starts anew.
    await client.query('select pg_advisory_lock_shared($1)', [USERS_LOCK]);
    await setUp(client, cluster);
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    if (isUnavailable(error)) return undefined;
    throw error;
  }
}

/** The database and the service's account, where a first start has not made them yet. */
async function setUp(client: pg.Client, cluster: Cluster): Promise<void> {
  const { rows } = await client.query(
    'select exists (select from pg_database where datname = $1) and exists (select from pg_roles where rolname = $2 and rolcanlogin) as done',
    [DATABASE, SERVICE_ROLE],
  );
  if (rows[0]?.done) return;
  const ignore = (state: string) => (error: unknown) => {
    if (sqlState(error) !== state && sqlState(error) !== '23505') throw error;
  };
  await client.query(`create role ${SERVICE_ROLE}`).catch(ignore('42710'));
  await client.query(`alter role ${SERVICE_ROLE} login password ${client.escapeLiteral(cluster.servicePassword)}`);
  await client.query(`create database ${DATABASE}`).catch(ignore('42P04'));
}

/** Gives the lock back, and stops the server if nobody else holds it. */
async function leave(client: pg.Client, pgdata: string): Promise<void> {
  let last = false;
  try {
    await client.query('select pg_advisory_unlock_shared($1)', [USERS_LOCK]);
    const { rows } = await client.query('select pg_try_advisory_lock($1) as last', [USERS_LOCK]);
    last = rows[0]?.last === true;
  } catch {
    // The server has gone already.
  }
  const server = findPostmaster(pgdata);
  if (last && server) {
    stopPostmaster(server.pid);
    const deadline = Date.now() + STOP_TIMEOUT_MS;
    while (findPostmaster(pgdata) && Date.now() < deadline) await sleep(POLL_MS);
  }
  await client.end().catch(() => {});
}
