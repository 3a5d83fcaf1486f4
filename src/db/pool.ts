import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { clientFor, hostAddresses } from './hosts.ts';
import type { HotStatement, Sql } from './sql.ts';
import { types } from './types.ts';
import { cut, Watch } from './watch.ts';

/** The role that the service works as: it can neither alter the schema nor update or delete journal rows. */
export const SERVICE_ROLE = 'scrip_service';

/** Statements that belong together run through one of these: the database itself, or a transaction on it. */
export type Queries = {
  query<Row>(statement: Sql): Promise<Row[]>;
};

/** What a transaction can do beside. */
export type Transaction = Queries & {
  /** Sends rows to a `copy … from stdin`, in parts, in the form that the statement names. */
  copyIn(statement: Sql, parts: readonly Uint8Array[]): Promise<void>;
};

export type Database = Queries & {
  readonly url: string;
  /** Runs `run` in one transaction (read committed unless `isolation` says otherwise); any throw rolls it back. */
  transaction<T>(run: (tx: Transaction) => Promise<T>, isolation?: 'repeatable read'): Promise<T>;
  /** Runs a statement of the hot path: prepared, index look-ups only, one round trip, its own transaction. */
  hot<Row>(statement: HotStatement, values: readonly unknown[]): Promise<Row[]>;
  /** A pool for a library that runs statements of its own, as the service's role; whoever opens it ends it. */
  openPool(name: string, size: number): pg.Pool;
  /** Whether statements of the hot path run, or ran a moment ago: who can wait gives way. */
  isBusy(): boolean;
  close(): Promise<void>;
};

/** Connections for ordinary work, and those kept apart for the calls at the till, so that neither starves the other. */
const POOL_SIZE = 10;
const HOT_SIZE = 6;

/** Nothing that serves a request takes longer; a statement that does is stuck. Milliseconds. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** One that was begun while the server was away must not keep calls waiting for two seconds after it is back. */
const CONNECT_TIMEOUT_MS = 1_500;
/** Who migrates, or tests, keeps nobody at a till waiting, and meets machines that have much to do. */
const OWNER_CONNECT_TIMEOUT_MS = 5_000;
/** At the till nobody waits so long: a statement of the hot path takes milliseconds. */
const HOT_TIMEOUT_MS = 5_000;
/** A server that hangs does not keep its own limits; so much longer is waited for it before the connection is given up. */
const GRACE_MS = 1_000;

/** A connection on which nothing is said for so long is asked whether it is there: a migration, which has no limit, ends by this. */
const KEEP_ALIVE_MS = 10_000;

/** Tills that were busy this long ago are busy still: at ten calls a second there is always another one. */
const BUSY_MS = 200;

/**
 * Each hot statement looks rows up by index, whatever the planner's idea of a young and empty table: without these a
 * plan made in the first minute would scan the table for as long as the connection lives.
 */
const HOT_OPTIONS = `-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_mergejoin=off -c jit=off -c statement_timeout=${HOT_TIMEOUT_MS}`;

/**
 * Long lists are read page by page along an index. In a young table the planner takes such a list for a short one, and would
 * gather and sort all that is left of it for each page: of a million vouchers, for minutes instead of seconds.
 */
const PAGE_OPTIONS = '-c enable_bitmapscan=off';

/**
 * What every connection of the service starts with. Anybody may make temporary tables, and these would be looked for first if they were
 * not named: a table of the books is never hidden behind one.
 */
const SESSION_OPTIONS = [
  `-c role=${SERVICE_ROLE} -c search_path=scrip,pg_temp -c timezone=UTC`,
  `-c statement_timeout=${STATEMENT_TIMEOUT_MS} -c idle_in_transaction_session_timeout=${STATEMENT_TIMEOUT_MS}`,
].join(' ');

/**
 * A pool of connections that may break at any time: the statement that needs one tells its caller. Without a listener on each
 * of them, one that breaks between two statements of a transaction would end the process.
 */
function poolOf(options: pg.PoolConfig): pg.Pool {
  return new pg.Pool(options).on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
}

/** A pool for a library that runs statements of its own, as the account that signs in; whoever opens it ends it. */
export function openPool(url: string, name: string, size: number): pg.Pool {
  // Libraries expect the driver's own types.
  return poolOf({ ...connectionOf(url, name), types: pg.types, max: size });
}

function connectionOf(url: string, name: string) {
  const Client = clientFor(url);
  const connectionString = hostAddresses(url)[0] as string;
  const alive = { keepAlive: true, keepAliveInitialDelayMillis: KEEP_ALIVE_MS };
  const limits = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...alive };
  return { Client, connectionString, types, application_name: name, ...limits };
}

/**
 * Opens the pools of a process. Nothing connects before the first statement.
 * @param url a PostgreSQL address; its user is, or may become, `scrip_service`
 */
export function openDatabase(url: string, name = 'scrip'): Database {
  const common = connectionOf(url, name);
  const pool = poolOf({ ...common, max: POOL_SIZE, options: `${SESSION_OPTIONS} ${PAGE_OPTIONS}` });
  const hotPool = poolOf({
    ...common,
    max: HOT_SIZE,
    options: `${SESSION_OPTIONS} ${HOT_OPTIONS}`,
    query_timeout: HOT_TIMEOUT_MS + GRACE_MS,
  });
  const watch = new Watch(() => new common.Client(common));
  for (const each of [pool, hotPool]) watch.guard(each);
  let lastHotAt = Number.NEGATIVE_INFINITY;
  return {
    url,
    query: (statement) => onClient(pool, watch, (client) => rowsOf(client, statement, STATEMENT_TIMEOUT_MS + GRACE_MS)),
    transaction: (run, isolation) => inTransaction(pool, watch, run, isolation),
    openPool(forName, size) {
      const options = `-c role=${SERVICE_ROLE}`;
      const query_timeout = STATEMENT_TIMEOUT_MS + GRACE_MS;
      const own = poolOf({ ...connectionOf(url, forName), types: pg.types, max: size, options, query_timeout });
      watch.guard(own);
      return own;
    },
    isBusy: () => performance.now() - lastHotAt < BUSY_MS,
    async hot<Row>(statement: HotStatement, values: readonly unknown[]) {
      if (!statement.background) lastHotAt = performance.now();
      const { name, text } = statement;
      return onClient(hotPool, watch, async (client) => {
        const result = await client.query({ name, text, values: [...values] });
        return result.rows as Row[];
      });
    },
    async close() {
      watch.close();
      await Promise.all([pool.end(), hotPool.end()]);
    },
  };
}

/** Runs one statement on a connection of a pool. */
async function onClient<T>(pool: pg.Pool, watch: Watch, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  watch.check();
  const client = await pool.connect();
  try {
    const result = await watch.run(client, () => run(client));
    client.release();
    return result;
  } catch (error) {
    // After an error of the network it is of no use, and one of the server may have been its last word.
    client.release(error as Error);
    throw error;
  }
}

/** Opens one connection as the owner of the schema, for migrations and tests; close it after use. */
export async function openOwner(url: string): Promise<Queries & { close(): Promise<void> }> {
  const client = await connectOwner(url);
  return { query: (statement) => rowsOf(client, statement), close: () => client.end() };
}

/** To the first server that takes writes, where there are several. */
async function connectOwner(url: string): Promise<pg.Client> {
  const common = { ...connectionOf(url, 'scrip-owner'), connectionTimeoutMillis: OWNER_CONNECT_TIMEOUT_MS };
  for (let left = hostAddresses(url).length; ; left--) {
    const client = new common.Client(common);
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (left === 1) throw error;
    }
  }
}

/** @param timeoutMs after which a server that does not even say that it gave up is no longer waited for */
async function rowsOf<Row>(
  on: pg.Pool | pg.PoolClient | pg.Client,
  statement: Sql,
  timeoutMs?: number,
): Promise<Row[]> {
  // A statement without parameters goes as it is, which also lets a migration hold several.
  const values = statement.values.length > 0 ? { values: [...statement.values] } : {};
  const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
  const result = await on.query({ text: statement.text, ...values, ...limit });
  return result.rows as Row[];
}

async function copyIn(client: pg.PoolClient, { text }: Sql, parts: readonly Uint8Array[]): Promise<void> {
  const stream = client.query(copyFrom(text));
  // The driver's own limit is for what it sends itself.
  const limit = setTimeout(cut, STATEMENT_TIMEOUT_MS + GRACE_MS, client);
  try {
    for (const part of parts) stream.write(part);
    stream.end();
    await finished(stream);
  } finally {
    clearTimeout(limit);
  }
}

async function inTransaction<T>(
  pool: pg.Pool,
  watch: Watch,
  run: (tx: Transaction) => Promise<T>,
  isolation: 'repeatable read' | undefined,
): Promise<T> {
  watch.check();
  const client = await pool.connect();
  // Whoever asks for an isolation of its own reads through everything, and sets its own limit.
  const limits = isolation === undefined;
  const ask = <Row>(statement: Sql, timeoutMs?: number) =>
    watch.run(client, () => rowsOf<Row>(client, statement, timeoutMs));
  const control = (text: string) => ask({ text, values: [] }, STATEMENT_TIMEOUT_MS + GRACE_MS);
  let broken: Error | undefined;
  try {
    await control(isolation ? `begin isolation level ${isolation}` : 'begin');
    const result = await run({
      query: (statement) => ask(statement, limits ? STATEMENT_TIMEOUT_MS + GRACE_MS : undefined),
      copyIn: (statement, parts) => watch.run(client, () => copyIn(client, statement, parts)),
    });
    await control('commit');
    return result;
  } catch (error) {
    if (isHanging(error)) broken = error;
    else
      await control('rollback').catch((failure: Error) => {
        broken = failure;
      });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** Whether the server did not answer at all: nothing that is sent after it on the same connection would be. */
function isHanging(error: unknown): error is Error {
  return error instanceof Error && error.message === 'Query read timeout';
}
