import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { PoolUsage } from '../monitor/metrics.ts';
import { isStarting, sqlState } from './errors.ts';
import { clientFor, elapsed, Health, hostAddresses } from './health.ts';
import { configure, SESSION } from './session.ts';
import { type HotStatement, type Sql, types } from './sql.ts';

/** Runs statements that belong together: either the database, or a transaction on it. */
export type Queries = {
  query<Row>(statement: Sql): Promise<Row[]>;
};

/** Whether a statement finds a row. */
export const finds = async (db: Queries, statement: Sql): Promise<boolean> =>
  (await db.query(statement)).length > 0;

/** The isolation of a transaction. One that names it reads much data, and sets its own time limits. */
type Isolation = 'read committed' | 'repeatable read';

export type Database = Queries & {
  readonly url: string;
  /**
   * Runs `run` in one transaction (read committed unless `isolation` says otherwise). Any error rolls it
   * back.
   */
  transaction<T>(run: (tx: Queries) => Promise<T>, isolation?: Isolation): Promise<T>;
  /**
   * Runs a statement of the hot path: prepared, one round trip, its own transaction.
   * @param bucket the bucket of its rows
   */
  hot<Row>(statement: HotStatement, values: readonly unknown[], bucket?: number): Promise<Row[]>;
  /** Whether statements of the hot path run, or ran a moment ago. Background work then waits. */
  isBusy(): boolean;
  /** The connections of its pools. */
  readonly pools: Readonly<Record<string, PoolUsage>>;
  close(): Promise<void>;
};

/** Connections for ordinary work. Calls of tills have their own, so that neither kind delays the other. */
const POOL_SIZE = 10;
const HOT_POOL_SIZE = 6;
/** Connections for statements that wait for other servers or for a row that many use: on several shards. */
const SLOW_POOL_SIZE = 3;
/** The most connections of a process; on one server, the slow ones stay unused. */
export const CONNECTIONS_MAX = POOL_SIZE + HOT_POOL_SIZE + SLOW_POOL_SIZE;
/** Unused connections are closed: a hundred processes together would hold many. */
const IDLE_TIMEOUT_MS = 10_000;

/** No request takes longer than this. A statement that does is stuck. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** A statement of the hot path takes milliseconds. */
const HOT_TIMEOUT_MS = 5_000;
/**
 * If the server was away when a connection attempt began, calls must not wait for it once the server is back.
 */
const CONNECT_TIMEOUT_MS = 1_500;
/** The limit for work that delays no till: it must survive a minute on a busy machine. */
const PATIENT_CONNECT_TIMEOUT_MS = 60_000;
/** How long the owner waits for a server before it tries the next one of the address. */
const NEXT_SERVER_MS = 5_000;
/** A server that hangs does not keep its own limits. The connection is closed this long after them. */
const GRACE_MS = 1_000;
/** How long a server may take to end its connections. One that hangs must not keep the process alive. */
const CLOSE_MS = 2_000;
/**
 * A silent connection is checked after this time. It ends a migration, which has no time limit, on a dead
 * server.
 */
const KEEP_ALIVE_MS = 10_000;

/** Tills are busy if they were busy this recently: at ten calls a second another call is coming. */
const BUSY_MS = 200;

/** Every connection of a pool is in use: the service is overloaded, though the server may be available. */
class PoolExhausted extends Error {
  readonly code = 'EPOOLEXHAUSTED';
}

/**
 * Opens a pool of connections that may break at any time; a running statement reports it. Each connection has
 * a listener: without one, a break between two statements of a transaction would end the process.
 */
function poolOf(options: pg.PoolConfig): pg.Pool {
  return new pg.Pool({ idleTimeoutMillis: IDLE_TIMEOUT_MS, ...options })
    .on('error', () => {})
    .on('connect', (client) => client.on('error', () => {}));
}

/** Opens the sockets of a pool, and can end those that a server which hangs keeps open. */
class Sockets {
  readonly #open = new Set<Socket>();

  readonly stream = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    return socket.once('close', () => this.#open.delete(socket));
  };

  async end(): Promise<void> {
    const closed = [...this.#open].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    await Promise.race([Promise.all(closed), elapsed(CLOSE_MS)]);
    for (const socket of this.#open) socket.destroy();
  }
}

function connectionOf(url: string, name: string, isReader = false) {
  const Client = isReader ? pg.Client : clientFor(url);
  const connectionString = hostAddresses(url)[0] as string;
  const alive = { keepAlive: true, keepAliveInitialDelayMillis: KEEP_ALIVE_MS };
  return {
    Client,
    connectionString,
    types,
    application_name: name,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    ...alive,
  };
}

type DatabaseOptions = {
  readonly isReader?: boolean;
  /** The number of connections for ordinary work. */
  readonly size?: number;
  /**
   * Whether its statements wait for a connection, and for a server that is away for a moment. For work that
   * nobody waits for.
   */
  readonly isPatient?: boolean;
  /** How long a statement waits for a connection, if it is not patient. A till is answered soon. */
  readonly waitMs?: number;
};

/**
 * Opens the pools of a process. Nothing connects before the first statement.
 * @param url a PostgreSQL address; its user is, or may become, `scrip_service`
 */
export function openDatabase(
  url: string,
  name = 'scrip',
  {
    isReader = false,
    size = POOL_SIZE,
    isPatient = false,
    waitMs = CONNECT_TIMEOUT_MS,
  }: DatabaseOptions = {},
): Database {
  const sockets = new Sockets();
  const common = {
    ...connectionOf(url, name, isReader),
    stream: sockets.stream,
    connectionTimeoutMillis: isPatient ? PATIENT_CONNECT_TIMEOUT_MS : waitMs,
  };
  const onConnect = (client: pg.ClientBase) => configure(client, SESSION);
  const pool = poolOf({ ...common, max: size, onConnect });
  const openHotPool = (max: number) =>
    poolOf({ ...common, max, onConnect, query_timeout: HOT_TIMEOUT_MS + GRACE_MS });
  const [hotPool, slowPool] = [openHotPool(HOT_POOL_SIZE), openHotPool(SLOW_POOL_SIZE)];
  const health = new Health(() => new common.Client(common), isPatient);
  let lastHotAt = Number.NEGATIVE_INFINITY;
  return {
    url,
    query: (statement) =>
      onClient(pool, health, (client) => rowsOf(client, statement, STATEMENT_TIMEOUT_MS + GRACE_MS)),
    transaction: (run, isolation) => inTransaction(pool, health, run, isolation),
    isBusy: () => performance.now() - lastHotAt < BUSY_MS,
    pools: { ordinary: pool, till: hotPool },
    async hot<Row>(
      { name: statementName, text, background, isSlow }: HotStatement,
      values: readonly unknown[],
    ) {
      if (!background) lastHotAt = performance.now();
      return onClient(isSlow ? slowPool : hotPool, health, async (client) => {
        const result = await client.query({ name: statementName, text, values: [...values] });
        return result.rows as Row[];
      });
    },
    async close() {
      health.close();
      // Statements in flight are waited for.
      await Promise.all([pool.end(), hotPool.end(), slowPool.end()]);
      await sockets.end();
    },
  };
}

/** Opens a standby, which answers lists and exports. It may lag behind, and takes no writes. */
export function openReader(url: string, name = 'scrip', options: DatabaseOptions = {}): Database {
  return openDatabase(url, `${name}-reader`, { ...options, isReader: true });
}

/** The pool's message for a timeout. A failed connection attempt has a different one. */
const NONE_FREE = 'timeout exceeded when trying to connect';

/** Takes a connection of a pool. A timeout while all are in use is overload, not an absent server. */
async function connect(pool: pg.Pool, health: Health): Promise<pg.PoolClient> {
  health.check();
  try {
    return await pool.connect();
  } catch (error) {
    if ((error as Error).message === NONE_FREE)
      throw new PoolExhausted('all connections to the database are in use');
    throw error;
  }
}

/** Runs one statement on a connection of a pool. */
async function onClient<T>(
  pool: pg.Pool,
  health: Health,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect(pool, health);
  try {
    const result = await health.track(() => run(client));
    client.release();
    return result;
  } catch (error) {
    // After a network error the connection is useless; after an error of the server it may be.
    client.release(error as Error);
    throw error;
  }
}

/** Opens one connection as the owner of the schema, for migrations and tests; close it after use. */
export async function openOwner(url: string): Promise<Queries & { close(): Promise<void> }> {
  const client = await connectOwner(url);
  return { ...queriesOn(client), close: () => client.end() };
}

/** Returns the statements of a client that is also used for COPY. */
export const queriesOn = (client: pg.Client): Queries => ({
  query: (statement) => rowsOf(client, statement),
});

/**
 * How long a start waits for a server that is starting itself: after a reboot, both begin at the same moment.
 * Recovery after a crash can take longer, which the message then says.
 */
const STARTING_MS = 10_000;
const STARTING_PAUSE_MS = 200;

/**
 * Connects as the owner to the first server that accepts writes. It waits some seconds for a server that is
 * starting, and a minute for one that is busy. End the client after use.
 */
export async function connectOwner(url: string): Promise<pg.Client> {
  for (const until = performance.now() + STARTING_MS; ; ) {
    try {
      return await connectToFirst(url);
    } catch (error) {
      if (!isStarting(error) || performance.now() > until) throw error;
      await sleep(STARTING_PAUSE_MS);
    }
  }
}

async function connectToFirst(url: string): Promise<pg.Client> {
  const common = connectionOf(url, 'scrip-owner');
  for (let left = hostAddresses(url).length; ; left--) {
    const connectionTimeoutMillis = left === 1 ? PATIENT_CONNECT_TIMEOUT_MS : NEXT_SERVER_MS;
    const client = new common.Client({ ...common, connectionTimeoutMillis });
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (left === 1) throw error;
    }
  }
}

/**
 * Returns the rows of a statement.
 * @param timeoutMs closes the connection if the server ignores its own limit
 */
async function rowsOf<Row>(
  on: pg.Pool | pg.PoolClient | pg.Client,
  statement: Sql,
  timeoutMs?: number,
): Promise<Row[]> {
  // A statement without parameters is sent as plain text, so that a migration can contain several statements.
  const values = statement.values.length > 0 ? { values: [...statement.values] } : {};
  const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
  const result = await on.query({ text: statement.text, ...values, ...limit });
  return result.rows as Row[];
}

async function inTransaction<T>(
  pool: pg.Pool,
  health: Health,
  run: (tx: Queries) => Promise<T>,
  isolation: Isolation | undefined,
): Promise<T> {
  const client = await connect(pool, health);
  // A transaction that names its isolation reads much data, and sets its own limit.
  const limits = isolation === undefined;
  const ask = <Row>(statement: Sql, timeoutMs?: number) =>
    health.track(() => rowsOf<Row>(client, statement, timeoutMs), limits ? undefined : true);
  const control = (text: string) => ask({ text, values: [] }, STATEMENT_TIMEOUT_MS + GRACE_MS);
  let broken: Error | undefined;
  try {
    await control(isolation ? `begin isolation level ${isolation}` : 'begin');
    const result = await run({
      query: (statement) => ask(statement, limits ? STATEMENT_TIMEOUT_MS + GRACE_MS : undefined),
    });
    await control('commit');
    return result;
  } catch (error) {
    if (isSilent(error)) broken = error;
    else
      await control('rollback').catch((failure: Error) => {
        broken = failure;
      });
    throw error;
  } finally {
    client.release(broken);
  }
}

/**
 * Whether the server gave no answer. It would not answer the next statement on the same connection either.
 */
function isSilent(error: unknown): error is Error {
  return (
    error instanceof Error &&
    (error.message === 'Query read timeout' || (error as { code?: unknown }).code === 'ETIMEDOUT')
  );
}

/**
 * Returns a database inside a transaction: its statements belong to the transaction and are rolled back with
 * it. A failure is final: a retry inside gets the first error, so that the caller repeats the whole
 * transaction.
 */
export function within(db: Database, tx: Queries): Database {
  let failure: unknown;
  const guard = async <T>(run: () => Promise<T>): Promise<T> => {
    if (failure !== undefined) throw failure;
    try {
      return await run();
    } catch (error) {
      if (sqlState(error)) failure = error;
      throw error;
    }
  };
  return {
    ...db,
    query: (statement) => guard(() => tx.query(statement)),
    hot: ({ text }, values) => guard(() => tx.query({ text, values })),
    transaction: (run) => guard(() => run(tx)),
    close: async () => {},
  };
}
