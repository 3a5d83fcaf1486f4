import { randomBytes } from 'node:crypto';
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { distribute } from '../../src/db/distribute.ts';
import { openEmbedded } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { createLogger } from '../../src/log.ts';
import { ensureDefaultProduct } from '../../src/products/products.ts';
import { createOnAll, startCitus } from '../citus/cluster.ts';
import { createPooledAccount, startPgBouncer } from '../pgbouncer/bouncer.ts';
import { atEnd, opened, temporaryFolder } from './leave-nothing.ts';
import { asOwner, dropDatabase } from './owner.ts';

/** Where a run has its databases: one server, or a coordinator and its workers. */
export type Place = 'postgres' | 'citus' | 'pgbouncer' | 'pgbouncer-transaction';

type Server = {
  readonly url: string;
  /** The workers of Citus. */
  readonly workers: readonly string[];
  /** Creates a database with the schema. */
  createTemplate(name: string): Promise<void>;
  close(): Promise<void>;
};

/** Few, so that a copy is made quickly; more than the workers, so that each has several. */
const TEST_BUCKETS = 4;

/** Settings of the server of the tests, for speed. */
const SETTINGS = {
  // A server goes through all of its buffers whenever a database is created or dropped.
  shared_buffers: '64MB',
  // The databases live for seconds, and temporary folders are in memory.
  autovacuum: 'off',
  wal_compression: 'off',
};

/** Opens the server of the tests, as an account that may create databases. */
async function openServer(): Promise<Server> {
  const given = process.env['SCRIP_DATABASE_URL'];
  if (given) return { ...onOneServer(given), close: async () => {} };
  const folder = await temporaryFolder('scrip-test-');
  const open = () =>
    opened(
      () => openEmbedded(folder, createLogger('warn')),
      ({ release }) => release(),
    );
  const first = await open();
  for (const [name, value] of Object.entries(SETTINGS))
    await asOwner(first.ownerUrl, `alter system set ${name} = '${value}'`);
  await first.release();
  const embedded = await open();
  return {
    ...onOneServer(embedded.ownerUrl),
    async close() {
      await embedded.release();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function onOneServer(url: string): Omit<Server, 'close'> {
  return {
    url,
    workers: [],
    async createTemplate(name) {
      await asOwner(url, `create database ${name}`);
      await fill(withName(url, name));
    },
  };
}

/** A server behind PgBouncer. The template is made without it, since a database in use cannot be copied. */
async function openPooled(): Promise<Server> {
  const server = await openServer();
  return { ...server, url: (await startPgBouncer(server.url)).url };
}

/**
 * A server behind PgBouncer in transaction mode. Few sessions serve each database, so that they change hands.
 * The tests themselves use the server directly.
 */
async function openTransactionPooled(): Promise<Server> {
  const server = await openServer();
  return {
    ...server,
    async createTemplate(name) {
      await server.createTemplate(name);
      // The role of the service exists now.
      const pooledUrl = await createPooledAccount(server.url);
      const pooling = { mode: 'transaction', keepsStatements: true, size: 3 } as const;
      process.env['SCRIP_TEST_SERVICE_URL'] = (await startPgBouncer(pooledUrl, pooling)).url;
    },
  };
}

/** A cluster of this run's own, on loopback. */
async function openCitus(): Promise<Server> {
  const cluster = await startCitus(await temporaryFolder('scrip-citus-'));
  const url = cluster.coordinator.url();
  const workers = cluster.workers.map((worker) => worker.url());
  return {
    url,
    workers,
    async createTemplate(name) {
      await createOnAll(cluster, name);
      await fill(withName(url, name), TEST_BUCKETS);
      // A database can only be copied without connections, including those of the processes of Citus.
      for (const node of [url, ...workers]) {
        await asOwner(node, `alter database ${name} with allow_connections false`);
        await asOwner(
          node,
          `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}'`,
        );
      }
    },
    close: async () => {},
  };
}

function withName(url: string, name: string): string {
  const address = new URL(url);
  address.pathname = `/${name}`;
  return address.href;
}

/** Returns the statements that create the functions again as they are. */
async function listFunctions(url: string): Promise<string[]> {
  const rows = await asOwner<{ text: string }>(
    url,
    `select pg_get_functiondef(oid) as text from pg_proc
        where pronamespace = 'scrip'::regnamespace and prokind in ('f', 'p') order by oid`,
  );
  return rows.map(({ text }) => text);
}

/**
 * Replaces every function of a distributed database by its original text, as the migrations of a later
 * release would. All tests on Citus then run on what is left.
 */
async function replaceFunctions(url: string, functions: readonly string[]): Promise<void> {
  const folder = await temporaryFolder('scrip-later-');
  await cp(fileURLToPath(new URL('../../sql/', import.meta.url)), folder, { recursive: true });
  const again = ['-- A later release.', '-- Works from: 001', ...functions.map((text) => `${text};`)];
  await writeFile(join(folder, '999-again.sql'), again.join('\n'));
  await migrate(url, undefined, undefined, pathToFileURL(`${folder}/`));
  await asOwner(url, 'delete from scrip.migrations where version = 999');
}

/**
 * Most tests move the clock of the service, but not that of the database. The tests that move both check
 * stamps again.
 */
const WITHOUT_STAMP_CHECK = `
create or replace function scrip.check_stamp(p_stamp timestamptz) returns void
language plpgsql as $$ begin end $$`;

const OPEN: Readonly<Record<Place, () => Promise<Server>>> = {
  postgres: openServer,
  citus: openCitus,
  pgbouncer: openPooled,
  'pgbouncer-transaction': openTransactionPooled,
};

/** Fills the template database of all tests: the schema, and the default product. */
async function fill(url: string, buckets?: number): Promise<void> {
  await migrate(url);
  await asOwner(url, WITHOUT_STAMP_CHECK);
  if (buckets !== undefined) {
    const functions = await listFunctions(url);
    await distribute(url, buckets);
    await replaceFunctions(url, functions);
  }
  const db = openDatabase(url, 'scrip-test');
  await ensureDefaultProduct(db, 'USD').finally(() => db.close());
}

/**
 * Runs a function that needs test databases. Meanwhile the harness finds the server and the template in
 * the environment.
 */
export async function withTestServer(run: () => Promise<void>, place: Place = 'postgres'): Promise<void> {
  const server = await OPEN[place]();
  const template = `scrip_template_${randomBytes(6).toString('hex')}`;
  const drop = () => dropDatabase(server.url, template).catch(() => {});
  const forget = atEnd(drop);
  try {
    await server.createTemplate(template);
    process.env['SCRIP_TEST_URL'] = server.url;
    if (server.workers.length > 0) process.env['SCRIP_TEST_WORKERS'] = server.workers.join(' ');
    process.env['SCRIP_TEST_TEMPLATE'] = template;
    await run();
  } finally {
    forget();
    await drop();
    await server.close();
  }
}
