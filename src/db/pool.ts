import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { clientFor, hostAddresses } from './hosts.ts';
import type { HotStatement, Sql } from './sql.ts';

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
  /** Whether statements of the hot path run, or ran a moment ago: who can wait gives way. */
  isBusy(): boolean;
  close(): Promise<void>;
};

/** Connections for ordinary work, and those kept apart for the calls at the till, so that neither starves the other. */
const POOL_SIZE = 10;
const HOT_SIZE = 6;

/** Nothing that serves a request takes longer; a statement that does is stuck. Milliseconds. */
const STATEMENT_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** At the till nobody waits so long: a statement of the hot path takes milliseconds. */
const HOT_TIMEOUT_MS = 5_000;
/** A server that hangs does not keep its own limits; so much longer is waited for it before the connection is given up. */
const GRACE_MS = 1_000;

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

/** What every connection of the service starts with. */
const SESSION_OPTIONS = [
  `-c role=${SERVICE_ROLE} -c search_path=scrip -c timezone=UTC`,
  `-c statement_timeout=${STATEMENT_TIMEOUT_MS} -c idle_in_transaction_session_timeout=${STATEMENT_TIMEOUT_MS}`,
].join(' ');

/**
 * A pool of connections that may break at any time: the statement that needs one tells its caller. Without a listener on each
 * of them, one that breaks between two statements of a transaction would end the process.
 */
function poolOf(options: pg.PoolConfig): pg.Pool {
  return new pg.Pool(options).on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
}

/**
 * A pool for a library that runs statements of its own; whoever opens it ends it.
 * @param role that the statements work as; left out, the one that signs in
 */
export function openPool(url: string, name: string, size: number, role?: string): pg.Pool {
  // Libraries expect the driver's own types.
  const common = { ...connectionOf(url, name), types: pg.types };
  return poolOf({ ...common, max: size, ...(role && { options: `-c role=${role}` }) });
}

function connectionOf(url: string, name: string) {
  const Client = clientFor(url);
  const connectionString = hostAddresses(url)[0] as string;
  return { Client, connectionString, types, application_name: name, connectionTimeoutMillis: CONNECT_TIMEOUT_MS };
}

const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === 20) return BigInt; // int8: money and serial numbers stay exact
    return pg.types.getTypeParser(oid, format);
  },
};

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
  let lastHotAt = Number.NEGATIVE_INFINITY;
  return {
    url,
    query: (statement) => rowsOf(pool, statement, STATEMENT_TIMEOUT_MS + GRACE_MS),
    transaction: (run, isolation) => inTransaction(pool, run, isolation),
    isBusy: () => performance.now() - lastHotAt < BUSY_MS,
    async hot<Row>(statement: HotStatement, values: readonly unknown[]) {
      lastHotAt = performance.now();
      const result = await hotPool.query({ name: statement.name, text: statement.text, values: [...values] });
      return result.rows as Row[];
    },
    async close() {
      await Promise.all([pool.end(), hotPool.end()]);
    },
  };
}

/** Opens one connection as the owner of the schema, for migrations and tests; close it after use. */
export async function openOwner(url: string): Promise<Queries & { close(): Promise<void> }> {
  const client = await connectOwner(url);
  return { query: (statement) => rowsOf(client, statement), close: () => client.end() };
}

/** To the first server that takes writes, where there are several. */
async function connectOwner(url: string): Promise<pg.Client> {
  const common = connectionOf(url, 'scrip-owner');
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
  for (const part of parts) stream.write(part);
  stream.end();
  await finished(stream);
}

async function inTransaction<T>(
  pool: pg.Pool,
  run: (tx: Transaction) => Promise<T>,
  isolation: 'repeatable read' | undefined,
): Promise<T> {
  const client = await pool.connect();
  // Whoever asks for an isolation of its own reads through everything, and sets its own limit.
  const limits = isolation === undefined;
  const control = (text: string) => rowsOf(client, { text, values: [] }, STATEMENT_TIMEOUT_MS + GRACE_MS);
  let broken: Error | undefined;
  try {
    await control(isolation ? `begin isolation level ${isolation}` : 'begin');
    const result = await run({
      query: (statement) => rowsOf(client, statement, limits ? STATEMENT_TIMEOUT_MS + GRACE_MS : undefined),
      copyIn: (statement, parts) => copyIn(client, statement, parts),
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

/** The SQLSTATE of an error of the database, if it is one. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** What keeps balances from falling below zero (sql/001-core.sql). */
const NEVER_NEGATIVE: ReadonlySet<unknown> = new Set(['vouchers_never_negative', 'accounts_never_negative']);

/**
 * Whether a statement lost a race against another one and may be sent again as it is.
 *
 * One of these races looks like a fault: where a balance has grown since a statement began (an activation, money given
 * back, a top-up), the statement decides on the new balance, which it reads under the row's lock, but PostgreSQL checks the
 * constraints of its update on the old one first, and only then notices that there is a newer one.
 */
export function isRetryable(error: unknown): boolean {
  const { constraint } = (error ?? {}) as { constraint?: unknown };
  return lostRace(sqlState(error)) || NEVER_NEGATIVE.has(constraint);
}

/** Serialization failure, deadlock. */
function lostRace(state: string | undefined): boolean {
  return state === '40001' || state === '40P01';
}

/** Whether nobody answered at all: the server is gone, out of reach, or hangs. */
export function isAway(error: unknown): boolean {
  return sqlState(error) === undefined && isUnavailable(error);
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENOENT',
  // A key of the key ring that another process was given, and this one was not yet.
  'EKEYMISSING',
]);

/** Whether an error means that there is no database to talk to just now (503), rather than a bug (500). */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnavailable);
  const state = sqlState(error);
  // 08 connection, 53 out of resources, 57 operator intervention (shutdown, statement timeout), 25006 read-only standby.
  if (state) return /^(08|53|57)/.test(state) || state === '25006' || state === '25P03' || lostRace(state);
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && NETWORK.has(code)) return true;
  return (
    typeof message === 'string' &&
    /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after)/.test(
      message,
    )
  );
}
