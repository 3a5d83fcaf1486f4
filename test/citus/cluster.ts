import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeDataFolder, type Programs, Server } from '../../soak/cluster.ts';
import { freePort } from '../../soak/process.ts';
import { openOwner } from '../../src/db/pool.ts';

/** A coordinator and two workers on loopback, of a PostgreSQL with Citus. */

const run = promisify(execFile);

const SETTINGS = [
  "shared_preload_libraries = 'citus'",
  'wal_level = logical', // a shard moves by replication
  'max_connections = 300',
  'max_prepared_transactions = 300',
  'max_wal_senders = 30',
  'max_replication_slots = 30',
  'max_worker_processes = 60', // a process for each database, and those that move shards
  'max_locks_per_transaction = 512',
  'shared_buffers = 256MB',
  "citus.node_conninfo = 'sslmode=disable'",
];

/** The programs of the PostgreSQL of `pg_config`. @throws an error of one line if it has no Citus */
export async function findCitus(): Promise<Programs> {
  const pgConfig = process.env['PG_CONFIG'] ?? 'pg_config';
  const ask = async (option: string) => (await run(pgConfig, [option])).stdout.trim();
  const missing = (why: string) =>
    new Error(
      `Citus is not installed on this machine (${why}): \`test/citus/build.sh FOLDER\` builds it from its sources`,
    );
  const library = await ask('--pkglibdir').catch(() => {
    throw missing(`${pgConfig} is missing`);
  });
  await access(join(library, 'citus.so')).catch(() => {
    throw missing(`there is no citus.so in ${library}`);
  });
  return { folder: await ask('--bindir') };
}

export type Cluster = { readonly coordinator: Server; readonly workers: readonly Server[] };

/**
 * Starts a coordinator and workers below a folder; they end with the run. Databases are prepared by
 * `createOnAll`.
 */
export async function startCitus(
  folder: string,
  settings: readonly string[] = [],
  workers = 2,
): Promise<Cluster> {
  const programs = await findCitus();
  const data = await makeDataFolder(folder);
  const servers: Server[] = [];
  for (const name of [
    'coordinator',
    ...Array.from({ length: workers }, (_, index) => `worker${index + 1}`),
  ]) {
    const server = new Server(programs, join(data, name), await freePort());
    await server.create([...SETTINGS, ...settings], 'trust');
    await server.start();
    servers.push(server);
  }
  const [coordinator, ...rest] = servers;
  return { coordinator: coordinator as Server, workers: rest };
}

/** Runs statements in a database of a server. */
export async function execute(
  server: Server,
  database: string,
  ...statements: readonly string[]
): Promise<void> {
  const owner = await openOwner(server.url(undefined, database));
  try {
    for (const text of statements) await owner.query({ text, values: [] });
  } finally {
    await owner.close();
  }
}

/** Creates a database on all servers, with the extension, and makes the workers known to the coordinator. */
export async function createOnAll({ coordinator, workers }: Cluster, database: string): Promise<void> {
  for (const server of [coordinator, ...workers]) {
    await execute(server, 'postgres', `create database ${database}`);
    await execute(server, database, 'create extension citus');
  }
  await execute(
    coordinator,
    database,
    `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
    ...workers.map(({ port }) => `select citus_add_node('127.0.0.1', ${port})`),
  );
}
