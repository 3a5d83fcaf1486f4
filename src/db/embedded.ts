import { copyFile, stat, truncate } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../log.ts';
import {
  createDatabase,
  createLogin,
  dropInUse,
  findContents,
  giveLogin,
  holdInUse,
  tryLast,
} from './embedded.queries.ts';
import { ADDRESS } from './embedded-configuration.ts';
import {
  describeFolder,
  exists,
  type Folder,
  lockFolder,
  prepareFolder,
  readSettings,
  SETTINGS_FILE,
  type Settings,
} from './embedded-folder.ts';
import { endServer, ensureServer, findServer, OWNER, stopServer } from './embedded-server.ts';
import { isUnavailable, sqlState } from './errors.ts';
import { SERVICE_ROLE } from './pool.ts';
import type { Sql } from './sql.ts';
import { StartError } from './start-error.ts';

/**
 * The embedded PostgreSQL of a data folder. Any number of processes use it together; the first one starts it, the last
 * one stops it. Each holds a connection with a shared lock, which the system takes from it however it ends.
 */

export type Embedded = {
  /** For migrations only. */
  readonly ownerUrl: string;
  /** The account that the service works as. */
  readonly serviceUrl: string;
  /** Gives the database back; it stops unless another process of this data folder still uses it. */
  release(): Promise<void>;
};

const DATABASE = 'scrip';
const MOST_LOG_BYTES = 5 * 1024 * 1024;
const LOG_LOOK_MS = 10 * 60_000;
/** Between two tries to get a lost database back. */
const RETRY_MS = 500;
const CONNECT_TRIES = 10;
/** A server can die between two looks, but not time and again. */
const JOIN_TURNS = 5;
const CONNECT_RETRY_MS = 100;

/**
 * Opens the database of a data folder: made if there is none, started if it does not run. It is started again when it
 * dies while this process uses it.
 * @param dataDir its path; made if it is not there
 * @throws StartError in one line where that cannot be
 */
export async function openEmbedded(dataDir: string, log: Logger): Promise<Embedded> {
  const hold = new Hold(await prepareFolder(resolve(dataDir)), log);
  const { ownerPassword, servicePassword } = await hold.take(undefined);
  return {
    ownerUrl: addressOf(OWNER, ownerPassword, hold.port),
    serviceUrl: addressOf(SERVICE_ROLE, servicePassword, hold.port),
    release: () => hold.release(),
  };
}

/** The address of a data folder's database, whether it runs or not; undefined where there is none yet. */
export async function findServiceUrl(dataDir: string): Promise<string | undefined> {
  const settings = await readSettings(describeFolder(resolve(dataDir)));
  return settings && addressOf(SERVICE_ROLE, settings.servicePassword, settings.port);
}

function addressOf(user: string, password: string, port: number, database = DATABASE): string {
  // Said outright, since PGSSLMODE in the environment would ask for what a server on the loopback does not have.
  return `postgres://${user}:${password}@${ADDRESS}:${port}/${database}?sslmode=disable`;
}

/** One process's use of the database. */
class Hold {
  readonly #folder: Folder;
  readonly #log: Logger;
  #client: pg.Client | undefined;
  #pid = 0;
  #released = false;
  #rotation: NodeJS.Timeout | undefined;
  port = 0;

  constructor(folder: Folder, log: Logger) {
    this.#folder = folder;
    this.#log = log;
  }

  async take(keepPort: number | undefined): Promise<Settings> {
    const unlock = await lockFolder(this.#folder);
    try {
      // Given back while it waited for the lock: nobody would stop what it starts now.
      if (this.#released) throw new Error('the database was given back');
      await rotateLog(this.#folder);
      const settings = await this.#join(keepPort);
      this.#rotation ??= setInterval(() => void rotateLog(this.#folder).catch(() => {}), LOG_LOOK_MS).unref();
      return settings;
    } finally {
      unlock();
    }
  }

  /** Finds or starts the server and connects to it; one that was found just as it died is looked for once more. */
  async #join(keepPort: number | undefined): Promise<Settings> {
    for (let turn = 1; ; turn++) {
      const server = await ensureServer(this.#folder, this.#log, keepPort);
      const settings = (await readSettings(this.#folder)) as Settings;
      this.port = server.port;
      this.#pid = server.pid;
      try {
        this.#client = await this.#connect(settings);
        return settings;
      } catch (error) {
        if (server.startedHere) await stopServer(this.#folder, this.#log);
        if (turn === JOIN_TURNS || !isUnavailable(error)) throw error;
      }
    }
  }

  async #connect(settings: Settings): Promise<pg.Client> {
    const client = await connectPatiently(settings, this.port);
    try {
      await send(client, holdInUse());
      await createContents(client, settings);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    client.once('end', () => {
      if (!this.#released && client === this.#client) void this.#restore();
    });
    return client;
  }

  /** The database has died under us: everything waits for it, and the calls meanwhile find no database. */
  async #restore(): Promise<void> {
    this.#log.warn('the database has gone: starting it again');
    while (!this.#released) {
      try {
        await this.take(this.port);
        this.#log.warn('the database is back');
        return;
      } catch (error) {
        if (this.#released) return;
        this.#log.error({ error: (error as Error).message }, 'the database cannot be started again');
        await sleep(RETRY_MS);
      }
    }
  }

  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    clearInterval(this.#rotation);
    if (!(await exists(this.#folder.cluster))) {
      await this.#client?.end().catch(() => {});
      return endServer(this.#pid, this.#folder);
    }
    const unlock = await lockFolder(this.#folder);
    try {
      if (!(await findServer(this.#folder))) return;
      const client = await this.#usable();
      const last = client ? await isLast(client).catch(() => false) : false;
      await client?.end().catch(() => {});
      if (last) await stopServer(this.#folder, this.#log);
    } finally {
      unlock();
    }
  }

  /** The connection, or a new one where the server died since. */
  async #usable(): Promise<pg.Client | undefined> {
    const own = this.#client;
    if (own && (await isAlive(own))) return own;
    const settings = await readSettings(this.#folder);
    return settings && connectPatiently(settings, this.port).catch(() => undefined);
  }
}

async function isAlive(client: pg.Client): Promise<boolean> {
  return send(client, dropInUse()).then(
    () => true,
    () => false,
  );
}

async function isLast(client: pg.Client): Promise<boolean> {
  const [row] = await send<{ last: boolean }>(client, tryLast());
  return row?.last ?? false;
}

/** Connects as the owner, to the database that every server has; one that is just starting or stopping gets its time. */
async function connectPatiently(settings: Settings, port: number): Promise<pg.Client> {
  for (let tries = 1; ; tries++) {
    // Not to the service's own database: it may not be there yet, and may one day be dropped and restored.
    const connectionString = addressOf(OWNER, settings.ownerPassword, port, 'postgres');
    const client = new pg.Client({ connectionString, application_name: 'scrip-holder', keepAlive: true });
    client.on('error', () => {}); // `end` follows, and that is what is listened to.
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (sqlState(error) === '28P01') {
        throw new StartError(
          `the database does not accept the password in ${SETTINGS_FILE}: put back the file that belongs to it`,
        );
      }
      if (tries >= CONNECT_TRIES || !isUnavailable(error)) throw error;
      await sleep(CONNECT_RETRY_MS);
    }
  }
}

/** Makes the service's account and the database, where a first start has not made them yet. Under the folder's lock. */
async function createContents(client: pg.Client, { servicePassword }: Settings): Promise<void> {
  const [found] = await send<{ database: boolean; login: boolean; role: boolean }>(
    client,
    findContents(DATABASE, SERVICE_ROLE),
  );
  if (!found?.role) await send(client, createLogin(SERVICE_ROLE, servicePassword));
  else if (!found.login) await send(client, giveLogin(SERVICE_ROLE, servicePassword));
  if (!found?.database) await send(client, createDatabase(DATABASE));
}

async function send<Row>(client: pg.Client, { text, values }: Sql): Promise<Row[]> {
  const result = await client.query(text, values.length > 0 ? [...values] : undefined);
  return result.rows as Row[];
}

/** Keeps the server's log within bounds: it is appended to, so that cutting it off under the server is safe. */
async function rotateLog({ log }: Folder): Promise<void> {
  const facts = await stat(log).catch(() => undefined);
  if (!facts || facts.size < MOST_LOG_BYTES) return;
  await copyFile(log, `${log}.1`);
  await truncate(log);
}
