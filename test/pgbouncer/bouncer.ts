import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../soak/process.ts';
import { openOwner } from '../../src/db/pool.ts';
import { atEnd, end, temporaryFolder } from '../support/leave-nothing.ts';

/** PgBouncer between the tests and their server. */

const run = promisify(execFile);

/** PgBouncer does not run as root. */
const ACCOUNT = 'nobody';
const LOOKS_MAX = 500;

/** The first version that keeps prepared statements in transaction mode: 1.21. */
const KEEPS_STATEMENTS = 21;

/**
 * Returns the minor version of PgBouncer 1.
 * @throws if it is not installed
 */
export async function findPgBouncer(): Promise<number> {
  const { stdout } = await run('pgbouncer', ['--version']).catch(() => {
    throw new Error(
      'PgBouncer is not installed on this machine: install it (on Debian: `apt-get install pgbouncer`)',
    );
  });
  return Number(/^PgBouncer 1\.(\d+)/.exec(stdout)?.[1]);
}

/** @throws if there is no PgBouncer that keeps prepared statements in transaction mode */
export async function findTransactionPooler(): Promise<void> {
  const version = await findPgBouncer();
  if (version < KEEPS_STATEMENTS)
    throw new Error(
      `PgBouncer 1.${version} keeps no prepared statements: install 1.${KEEPS_STATEMENTS} or later`,
    );
}

/** The account of calls in transaction mode, as the documentation creates it. */
export async function createPooledAccount(ownerUrl: string): Promise<string> {
  const page = await readFile(new URL('../../docs/how-to/deploy.md', import.meta.url), 'utf8');
  const [, statements = ''] = /```sql\n(create role scrip_pooled .*?)```/s.exec(page) ?? [];
  const owner = await openOwner(ownerUrl);
  await owner.query({ text: 'drop role if exists scrip_pooled', values: [] });
  await owner.query({ text: statements, values: [] }).finally(() => owner.close());
  const url = new URL(ownerUrl);
  url.username = 'scrip_pooled';
  url.password = '…';
  return url.href;
}

type Pooling = {
  readonly mode?: 'session' | 'transaction';
  /** Whether it keeps prepared statements in transaction mode. */
  readonly keepsStatements?: boolean;
  /** The sessions for each database and account. */
  readonly size?: number;
};

/**
 * Starts a pooler in front of a server; it ends with the run, or with `close`.
 * @param url of the server, as the account that the tests use
 * @returns `url`: the same address through the pooler
 */
export async function startPgBouncer(
  url: string,
  { mode = 'session', keepsStatements = false, size = 90 }: Pooling = {},
): Promise<{ url: string; close(): Promise<unknown> }> {
  const server = new URL(url);
  const folder = await temporaryFolder('scrip-pgbouncer-');
  const port = await freePort();
  const [user, password] = [server.username, server.password].map(decodeURIComponent);
  // The settings of Debian, except for addresses and sizes. Each client of the tests has its own session.
  const config = `[databases]
* = host=${server.hostname} port=${server.port} user=${user} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
max_client_conn = 1000
default_pool_size = ${size}
server_idle_timeout = 1
ignore_startup_parameters = extra_float_digits
${(await findPgBouncer()) < KEEPS_STATEMENTS ? '' : `max_prepared_statements = ${keepsStatements ? 200 : 0}\n`}`;
  const file = join(folder, 'pgbouncer.ini');
  await writeFile(file, config);
  await Promise.all([chmod(folder, 0o755), chmod(file, 0o644)]);
  const asRoot = process.getuid?.() === 0 ? ['-u', ACCOUNT] : [];
  const child = spawn('pgbouncer', ['-q', ...asRoot, file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const close = async () => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  atEnd(close);
  await isListening(child, port);
  server.host = `127.0.0.1:${port}`;
  return { url: server.href, close };
}

async function isListening(child: ChildProcess, port: number): Promise<void> {
  for (let look = 0; look < LOOKS_MAX; look++) {
    if (child.exitCode !== null) break;
    const answers = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1', () => resolve(true)).on('error', () =>
        resolve(false),
      );
      socket.unref().on('connect', () => socket.destroy());
    });
    if (answers) return;
    await sleep(20);
  }
  throw new Error('PgBouncer did not start: see its output above');
}
