import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import type { TestContext } from 'node:test';
import { createMerchant } from '../../src/api-keys/create-merchant.ts';
import { flushCalls } from '../../src/api-keys/guesses.ts';
import { findBatchBy } from '../../src/batches/batch.ts';
import { fillBatch } from '../../src/batches/fill.ts';
import { createService, type Permission, type Service } from '../../src/context.ts';
import { bucketsOf, readBuckets } from '../../src/db/buckets.ts';
import { type Database, openDatabase } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { withWorkers } from '../../src/db/workers.ts';
import { newKeyRing, readKeyRing } from '../../src/keyring/file.ts';
import { openKeyRing } from '../../src/keyring/store.ts';
import { createLogger } from '../../src/log.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { Readiness } from '../../src/monitor/readiness.ts';
import type { Caller } from '../../src/operation.ts';
import type { Principal } from '../../src/principal.ts';
import { DEFAULT_PRODUCT, findProduct } from '../../src/products/products.ts';
import { flushDeclines } from '../../src/vouchers/declines.ts';
import type { ApiRequest } from './dialects.ts';
import { DEPLOYMENT } from './doctor.ts';
import { asOwner, dropDatabase } from './owner.ts';
import type { Scope } from './scope.ts';
import { PATIENCE_MS } from './until.ts';

/** For each test: a fresh database, a service on it, and (testService) a server that listens. */

type TestDatabase = {
  /** With an account that has all rights; the service reduces its own. */
  readonly url: string;
  drop(): Promise<void>;
};

/** A clock that shows the real time until a test moves it. */
type TestClock = {
  now(): Date;
  /** Stops it at a time. */
  set(time: Date): void;
  advance(ms: number): void;
};

export type TestMerchant = {
  readonly id: number;
  readonly keyId: string;
  readonly secret: string;
  readonly authorization: string;
};

type NewMerchant = {
  /** Permissions beside those of every new merchant. */
  readonly permit?: readonly Permission[];
  /** Permissions of every new merchant that this one does not have. */
  readonly forbid?: readonly Permission[];
  /** In minor units; FLOAT_MINOR unless given. */
  readonly float?: bigint;
  readonly opaque?: boolean;
  readonly product?: string;
  readonly name?: string;
};

export type TestService = {
  readonly service: Service;
  readonly url: string;
  /** The key ring in the format of SCRIP_KEYS, with which another process is the same service. */
  readonly keys: string;
  readonly clock: TestClock;
  createMerchant(options?: NewMerchant): Promise<TestMerchant>;
  /** Stops the other processes on its database too, since it drops that. */
  stop(): Promise<void>;
  /** Those other processes. */
  readonly others: (() => Promise<void>)[];
};

/** An answer of the server. */
type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly replayed: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the tests are about.
  readonly body: any;
  readonly statusCode: string;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly data: any;
};

export type ListeningService = TestService & {
  readonly baseUrl: string;
  /** Sends a request of a merchant, and parses the answer, which is always JSON. */
  request(merchant: TestMerchant, request: ApiRequest): Promise<Answer>;
};

/** The command line, as a principal. */
export const COMMAND_LINE: Principal = {
  kind: 'command-line',
  id: null,
  userId: null,
  name: 'tester',
  roles: ['owner'],
  merchantId: null,
  origin: 'tests',
  requestId: null,
  steppedUp: true,
};

/** The operator of a service, at a command line that needs nobody else. */
export function asOperator(service: Service, name = 'tester'): Caller {
  return {
    service,
    principal: { ...COMMAND_LINE, kind: 'break-glass' },
    isAgreed: true,
    actor: { kind: 'command-line', id: null, requestId: null, name, origin: 'tests', reason: null },
  };
}

/** Produces a batch to its end, however many turns that takes on a busy machine. */
export async function produceAll(service: Service, batchId: number): Promise<void> {
  for (let isDone = false; !isDone; ) {
    await fillBatch(service, batchId, () => false);
    const batch = await findBatchBy(service.db, sql`id = ${batchId}`);
    isDone = batch?.status !== 'PROCESSING';
  }
}

const FLOAT_MINOR = 10_000_000n;
/** The log of every service: each logger would write to its destination ten times a second. */
const log = createLogger('silent');

function required(name: string): string {
  return (
    process.env[name] ??
    assert.fail(`run tests by \`npm test\`, or \`node test/run.ts WORD\`: ${name} is not set`)
  );
}

function databaseUrl(name: string): string {
  return new URL(`/${name}`, required('SCRIP_TEST_URL')).href;
}

/** The address at which a service uses a database: through a pooler that the tests themselves cannot use. */
function serviceUrl(url: string): string {
  const pooled = process.env['SCRIP_TEST_SERVICE_URL'];
  return pooled === undefined ? url : new URL(new URL(url).pathname, pooled).href;
}

/** Does something on the server; with Citus on each one, where a database has the same name. */
async function onEachServer(run: (url: string) => Promise<unknown>): Promise<void> {
  const workers = process.env['SCRIP_TEST_WORKERS']?.split(' ') ?? [];
  await Promise.all([required('SCRIP_TEST_URL'), ...workers].map(run));
}

/** A copy of the migrated template; `drop` it, or give a test context that does so at its end. */
export async function testDatabase(t?: TestContext): Promise<TestDatabase> {
  const name = `scrip_test_${randomBytes(6).toString('hex')}`;
  const strategy = process.env['SCRIP_TEST_COPY'] ?? 'wal_log';
  const text = `create database ${name} template ${required('SCRIP_TEST_TEMPLATE')} strategy ${strategy}`;
  await onEachServer((url) => asOwner(url, text));
  const drop = () => onEachServer((url) => dropDatabase(url, name));
  t?.after(drop);
  return { url: databaseUrl(name), drop };
}

/** A database without the schema. */
export async function emptyDatabase(t: TestContext): Promise<TestDatabase> {
  const database = await testDatabase(t);
  await asOwner(database.url, 'drop schema scrip cascade');
  return database;
}

/** Gives a database more buckets, all on its one server. */
async function addBuckets(url: string, count: number): Promise<void> {
  const rows = `select k, k from generate_series(1, ${count - 1}) k`;
  for (const text of ['buckets (bucket, position)', 'bucket_positions (bucket, position)'])
    await asOwner(url, `insert into scrip.${text} ${rows}`);
}

/** Runs a stop only once: a test may stop a service early, and the end of the test stops it in any case. */
function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run();
    return running;
  };
}

function testClock(): TestClock {
  let stoppedAt: number | undefined;
  let ahead = 0;
  return {
    now: () => new Date((stoppedAt ?? Date.now()) + ahead),
    set(time) {
      stoppedAt = time.getTime();
      ahead = 0;
    },
    advance(ms) {
      ahead += ms;
    },
  };
}

/**
 * How long a service waits for a connection: as in production, or for as long as a busy machine takes. Only
 * tests of an absent database or a full pool want the former.
 */
type Patience = { readonly isPatient?: boolean };

/** The number of buckets of a database on one server. A Citus cluster has its own. */
type Shape = { readonly buckets?: number };

/**
 * A service on a database: a fresh one, or one that another service of the test already works on.
 * @param on the service to share database and key ring with, as a second process does
 */
export async function startTestService(
  on?: TestService,
  { isPatient = true, buckets: count = 1 }: Patience & Shape = {},
): Promise<TestService> {
  const database = on ? undefined : await testDatabase();
  const url = on?.url ?? (database as TestDatabase).url;
  if (count > 1 && process.env['SCRIP_TEST_WORKERS'] === undefined) await addBuckets(url, count);
  const keys = on?.keys ?? newKeyRing();
  const clock = on?.clock ?? testClock();
  const db = await withWorkers(openDatabase(serviceUrl(url), 'scrip-test', { isPatient }), 'scrip-test', {
    isPatient,
  });
  const ring = await openKeyRing(db, { keys, dataDir: tmpdir() });
  const buckets = await readBuckets(db);
  const service = createService({
    db,
    readDb: db,
    buckets,
    keys: ring,
    log,
    clock: clock.now,
    deployment: async () => DEPLOYMENT,
    ...(isPatient && { readiness: new Readiness(log, PATIENCE_MS) }),
  });

  const others: (() => Promise<void>)[] = [];
  const stop = once(async () => {
    await Promise.all(others.map((stopOther) => stopOther()));
    await flushDeclines(service);
    await flushCalls(service);
    await db.close();
    await database?.drop();
  });
  on?.others.push(stop);
  const createMerchant = (options?: NewMerchant) => makeMerchant(service, options);
  return { service, url, keys, clock, createMerchant, stop, others };
}

/**
 * A service without a database, for tests of the HTTP layer alone. Close its `db` at the end.
 */
export function serviceWithoutDatabase(): Service {
  const db = openDatabase('postgres://nobody@127.0.0.1:1/nothing');
  const keys = readKeyRing(newKeyRing(), 'the test');
  const clock = () => new Date();
  return createService({
    db,
    readDb: db,
    buckets: bucketsOf([0]),
    keys,
    log,
    clock,
    deployment: async () => DEPLOYMENT,
  });
}

/** The same service on other connections to its database. */
export function onDatabase(service: Service, db: Database): Service {
  return createService({ ...service, db, readDb: db });
}

/** The header with which a merchant sends its key. */
export const basic = (keyId: string, secret: string) => `Basic ${btoa(`${keyId}:${secret}`)}`;

async function makeMerchant(service: Service, options: NewMerchant = {}): Promise<TestMerchant> {
  const { permit = [], forbid = [], float = FLOAT_MINOR, opaque = false, name = 'Test' } = options;
  const product = await findProduct(service.db, options.product ?? DEFAULT_PRODUCT);
  assert.ok(product, 'there is no such product');
  const { id, keyId, secret } = await createMerchant(asOperator(service), {
    name,
    permit,
    opaque,
    productId: product.id,
    ...(float > 0n && { float: { currency: product.currency, amountMinor: float } }),
  });
  for (const permission of forbid)
    await merchants.forbid.run(asOperator(service), { id: String(id), permission });
  return { id, keyId, secret, authorization: basic(keyId, secret) };
}

/** A service whose server listens on a free port, until the test ends. */
export async function testService(
  t: Scope,
  on?: TestService,
  patience?: Patience,
): Promise<ListeningService> {
  const listening = await startListening(on, patience);
  t.after(listening.stop);
  return listening;
}

/** The same, until it is stopped. */
export async function startListening(on?: TestService, patience?: Patience): Promise<ListeningService> {
  const started = await startTestService(on, patience);
  // Most of the time that loading takes is the server's, and many tests need none.
  const { buildServer } = await import('../../src/http/server.ts');
  const app = buildServer(started.service);
  const stop = once(async () => {
    await app.close();
    await started.stop();
  });
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });

  async function request(
    { authorization }: TestMerchant,
    { method, path, body }: ApiRequest,
  ): Promise<Answer> {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { statusCode: string; data: unknown };
    const { statusCode, data } = answer;
    const replayed = response.headers.get('idempotent-replayed') === 'true';
    return { status: response.status, headers: response.headers, replayed, body: answer, statusCode, data };
  }

  return { ...started, stop, baseUrl, request };
}
