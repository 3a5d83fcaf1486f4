import { copyFile, stat, truncate } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { prepareArchive, SPOOL } from './archive.ts';
import type { Authenticator } from './authenticator.ts';
import { addressOf, connect, createContents, isUnavailable, ownerOf, systemIdentifier } from './connect.ts';
import { EmbeddedError } from './error.ts';
import {
  describeFolder,
  exists,
  type Folder,
  makeFolder,
  prepareFolder,
  readSettings,
  requireOwn,
  type Settings,
} from './folder.ts';
import { lockFolder, UseLock } from './lock.ts';
import { openStorage } from './open-storage.ts';
import { endServer, findServer } from './process.ts';
import { Sender } from './sender.ts';
import { changeArchive, type Log, startServer, stopServer } from './server.ts';

/**
 * One process's use of the database in a folder. Any number of processes use it together: the first one
 * starts the server, the last one stops it, and the lock that each of them holds for as long says which
 * one is the last.
 *
 * All users see the server's process. A container that shares only the volume does not, and is refused
 * for as long as there are users elsewhere: a second server on the same files would destroy them.
 */

export type Options = {
  /** The database; its owner is called `<database>_owner`. */
  readonly database: string;
  /** The account that works in it, and owns nothing. */
  readonly user: string;
  readonly log: Log;
  /** How long a start waits for users elsewhere to release the folder, in milliseconds. */
  readonly waitMs?: number;
};

export type Embedded = {
  /** The address for `user`. */
  readonly url: string;
  /** The address for the owner, for migrations. */
  readonly ownerUrl: string;
  /**
   * Archives the log from now on; without a place, no longer. Commands beside the service leave it as it is.
   * @param place a folder, or `s3://bucket/prefix`
   * @param writer proves to a restore who wrote it
   * @throws EmbeddedError
   */
  archive(place: string | undefined, writer: Authenticator): Promise<void>;
  /** Ends the use. The server stops, unless another process uses it. */
  release(): Promise<void>;
};

const WAIT_MS = 10_000;
const WAIT_RETRY_MS = 100;
const LOG_MAX_BYTES = 5 * 1024 * 1024;
const LOG_CHECK_MS = 10 * 60_000;
const RESTORE_RETRY_MS = 500;
/** How often the same reason is logged why the server does not start: it is tried twice a second. */
const RESTORE_LOG_MS = 60_000;
/** A server can die between being found and being connected to, but not time and again. */
const JOIN_ATTEMPTS = 5;

/**
 * Uses the database in a folder: creates it if there is none, starts its server if it does not run. A
 * server that dies is started again, at the same address, for as long as it is used.
 * @throws EmbeddedError, one line for the operator
 */
export async function start(folder: string, options: Options): Promise<Embedded> {
  const place = await prepareFolder(folder);
  const use = new Use(place, await UseLock.open(place), options);
  const { ownerPassword, servicePassword } = await use.begin();
  return {
    url: addressOf(options.user, servicePassword, use.port, options.database),
    ownerUrl: addressOf(ownerOf(options), ownerPassword, use.port, options.database),
    archive: (place, writer) => use.archive({ place, writer }),
    release: () => use.release(),
  };
}

/**
 * Returns the address for `user` of a folder's database, whether its server runs or not.
 * @returns undefined if the folder holds no database
 * @throws EmbeddedError if it belongs to another account
 */
export async function find(
  folder: string,
  { database, user }: Pick<Options, 'database' | 'user'>,
): Promise<string | undefined> {
  await requireOwn(resolve(folder), 'the data folder', 'folder');
  const settings = await readSettings(describeFolder(resolve(folder)));
  return settings && addressOf(user, settings.servicePassword, settings.port, database);
}

type Archiving = { readonly place: string | undefined; readonly writer: Authenticator };

class Use {
  readonly #folder: Folder;
  readonly #lock: UseLock;
  readonly #options: Options;
  readonly #log: Log;
  #client: pg.Client | undefined;
  #pid = 0;
  #isReleased = false;
  #rotation: NodeJS.Timeout | undefined;
  #archiving: Archiving | undefined;
  #sender: Sender | undefined;
  port = 0;

  constructor(folder: Folder, lock: UseLock, options: Options) {
    this.#folder = folder;
    this.#lock = lock;
    this.#options = options;
    this.#log = options.log;
  }

  async begin(): Promise<Settings> {
    const deadline = performance.now() + (this.#options.waitMs ?? WAIT_MS);
    try {
      for (;;) {
        const settings = await this.#join(undefined);
        if (settings) {
          this.#rotation = setInterval(() => void rotateLog(this.#folder), LOG_CHECK_MS).unref();
          return settings;
        }
        if (performance.now() > deadline) {
          throw new EmbeddedError(
            `the database in ${this.#folder.root} is in use, and its server cannot be seen from here: it cannot start ` +
              `(${this.#folder.log} says why), or it runs in another container or on another machine: stop that first`,
            'folder',
          );
        }
        await sleep(WAIT_RETRY_MS);
      }
    } catch (error) {
      this.#lock.close();
      throw error;
    }
  }

  /** Joins the server, started if need be. Undefined where users elsewhere have one that cannot be seen. */
  async #join(keepPort: number | undefined): Promise<Settings | undefined> {
    const unlock = await lockFolder(this.#folder);
    try {
      // Released while it waited for the lock: nobody would stop the server that it starts now.
      if (this.#isReleased) throw new Error('the database was released');
      // Users of a server that died may start it again: no one elsewhere can have started one while they
      // hold the lock.
      const isFirst = keepPort === undefined && this.#lock.release();
      if (keepPort === undefined && !isFirst && !(await findServer(this.#folder))) return undefined;
      this.#lock.hold();
      await rotateLog(this.#folder);
      return await this.#connectToServer(keepPort);
    } finally {
      unlock();
    }
  }

  async #connectToServer(keepPort: number | undefined): Promise<Settings> {
    for (let attempts = 1; ; attempts++) {
      const server =
        (await findServer(this.#folder)) ??
        (await startServer(this.#folder, ownerOf(this.#options), this.#log, keepPort));
      if (keepPort !== undefined && server.port !== keepPort) {
        throw new EmbeddedError(
          `the database now runs on port ${server.port} instead of ${keepPort}: restart this process`,
        );
      }
      const settings = (await readSettings(this.#folder)) as Settings;
      this.port = server.port;
      this.#pid = server.pid;
      try {
        await this.#open(settings);
        return settings;
      } catch (error) {
        if (server.startedHere) await stopServer(this.#folder, this.#log);
        if (attempts === JOIN_ATTEMPTS || !isUnavailable(error)) throw error;
      }
    }
  }

  async #open(settings: Settings): Promise<void> {
    const client = await this.#connect(settings);
    this.#client = client;
    try {
      if (this.#archiving) await this.#archive(this.#archiving, client, settings);
    } catch (error) {
      this.#client = undefined;
      await client.end().catch(() => {});
      throw error;
    }
  }

  /** Opens the connection whose end says that the server has died. */
  async #connect(settings: Settings): Promise<pg.Client> {
    // To the database that every server has: our own may not exist yet, or be dropped and restored one day.
    const client = await connect(
      addressOf(ownerOf(this.#options), settings.ownerPassword, this.port, 'postgres'),
    );
    try {
      await createContents(client, this.#options, settings.servicePassword);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    client.once('end', () => {
      if (!this.#isReleased && client === this.#client) void this.#restore();
    });
    return client;
  }

  async archive(archiving: Archiving): Promise<void> {
    this.#archiving = archiving;
    const settings = (await readSettings(this.#folder)) as Settings;
    // If the server has just died, its next start begins to archive.
    if (this.#client) await this.#archive(archiving, this.#client, settings);
  }

  async #archive({ place, writer }: Archiving, client: pg.Client, settings: Settings): Promise<void> {
    const archive = place === undefined ? undefined : await openStorage(place);
    if (archive) {
      await prepareArchive(archive, await systemIdentifier(client));
      await makeFolder(join(this.#folder.root, SPOOL));
    }
    if (archive?.name !== settings.archiveDir || settings.keepsLog) {
      await changeArchive(this.#folder, settings, archive?.name);
      await client.query('select pg_reload_conf()');
    }
    if (this.#sender) this.#sender.use(client);
    else if (archive) this.#sender = new Sender(this.#folder, archive, writer, client, this.#log);
  }

  async #restore(): Promise<void> {
    this.#log.warn('the database has died: starting it again');
    for (let last = { message: '', at: 0 }; !this.#isReleased; ) {
      try {
        await this.#join(this.port);
        this.#log.warn('the database is back');
        return;
      } catch (error) {
        if (this.#isReleased) return;
        const { message } = error as Error;
        if (message !== last.message || performance.now() - last.at > RESTORE_LOG_MS) {
          this.#log.error({ error: message }, 'the database cannot be started again');
          last = { message, at: performance.now() };
        }
        await sleep(RESTORE_RETRY_MS);
      }
    }
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearInterval(this.#rotation);
    await this.#sender?.stop();
    if (!(await exists(this.#folder.cluster))) {
      await this.#client?.end().catch(() => {});
      this.#lock.close();
      return endServer(this.#pid, this.#folder);
    }
    const unlock = await lockFolder(this.#folder);
    try {
      const isLast = this.#lock.release();
      this.#lock.close();
      await this.#client?.end().catch(() => {});
      if (isLast) await stopServer(this.#folder, this.#log);
    } finally {
      unlock();
    }
  }
}

/**
 * Keeps the server's log within bounds. The server appends to it, so it can be truncated while it is open. If
 * that fails, on a full disk for example, the log grows: the database must start all the same.
 */
async function rotateLog({ log }: Folder): Promise<void> {
  try {
    if ((await stat(log)).size < LOG_MAX_BYTES) return;
    await copyFile(log, `${log}.1`);
    await truncate(log);
  } catch {
    // The next turn tries it again.
  }
}
