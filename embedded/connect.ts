import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ADDRESS } from './configuration.ts';
import { EmbeddedError } from './error.ts';
import { codeOf, SETTINGS_FILE } from './folder.ts';

/** Connections to the server of a folder. */

const CONNECT_ATTEMPTS = 10;
const CONNECT_RETRY_MS = 100;

export const ownerOf = ({ database }: { database: string }) => `${database}_owner`;

export function addressOf(user: string, password: string, port: number, database: string): string {
  // Explicit, since PGSSLMODE in the environment could ask for TLS, which a server on the loopback does
  // not have.
  return `postgres://${user}:${password}@${ADDRESS}:${port}/${database}?sslmode=disable`;
}

/** The address of a server's socket in a folder, where no password is asked. */
export function socketAddressOf(user: string, folder: string, port: number, database: string): string {
  return `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(folder)}`;
}

/** What distinguishes databases, and what its backups and its archived log are known by. */
export async function systemIdentifier(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    'select system_identifier::text as id from pg_control_system()',
  );
  return (rows[0] as { id: string }).id;
}

/** Connects to a server, which may be starting or stopping just then. */
export async function connect(connectionString: string): Promise<pg.Client> {
  for (let attempts = 1; ; attempts++) {
    const client = new pg.Client({ connectionString, application_name: 'scrip-embedded', keepAlive: true });
    client.on('error', () => {}); // 'end' follows.
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (codeOf(error) === '28P01') {
        throw new EmbeddedError(
          `the database does not accept the password in ${SETTINGS_FILE}: restore the file that belongs to it`,
        );
      }
      if (attempts >= CONNECT_ATTEMPTS || !isUnavailable(error)) throw error;
      await sleep(CONNECT_RETRY_MS);
    }
  }
}

/** Whether the server is gone, or just starting or stopping. */
export function isUnavailable(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return /^(ECONN|EPIPE|08|57P0)/.test(code) || message.startsWith('Connection terminated');
}

/** `create role` and `alter role` take no parameters. */
function requirePlain(password: string): void {
  if (!/^[0-9a-f]+$/.test(password)) throw new EmbeddedError(`the password in ${SETTINGS_FILE} is damaged`);
}

/** @param passwords by account */
export async function setPasswords(
  client: pg.Client,
  passwords: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [user, password] of Object.entries(passwords)) {
    requirePlain(password);
    await client.query(`alter role ${user} password '${password}'`);
  }
}

/**
 * Creates the user and the database, where a first start has not created them yet. Under the lock of the
 * folder.
 */
export async function createContents(
  client: pg.Client,
  { database, user }: { readonly database: string; readonly user: string },
  password: string,
): Promise<void> {
  requirePlain(password);
  const { rows } = await client.query<{ role: boolean; login: boolean; database: boolean }>(
    `select exists (select from pg_roles where rolname = $1) as role,
  exists (select from pg_roles where rolname = $1 and rolcanlogin) as login,
  exists (select from pg_database where datname = $2) as database`,
    [user, database],
  );
  const [found] = rows;
  if (!found?.login)
    await client.query(`${found?.role ? 'alter' : 'create'} role ${user} login password '${password}'`);
  if (!found?.database) await client.query(`create database ${database}`);
}
