import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, type Folder } from './folder.ts';

/**
 * Locks on files. Node has no file locks of its own; SQLite's are those of the operating
 * system: released when their holder dies, however it dies, and valid between containers that share a
 * volume, where process ids mean nothing.
 */

const RETRY_MS = 20;
const SQLITE_BUSY = 5;

async function openLock(file: string): Promise<DatabaseSync> {
  // An existing file must not be opened here: closing it would release all locks that this process holds
  // on it.
  await writeFile(file, '', { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  return new DatabaseSync(file, { timeout: 0 });
}

function tryExclusive(lock: DatabaseSync): boolean {
  try {
    // A journal on the disk would need space, and commands must work on a full disk too.
    lock.exec('pragma journal_mode = memory; begin exclusive');
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw error;
  }
}

/**
 * Waits for a lock that one process has at a time.
 * @param isOver ends the wait
 * @returns a function that releases the lock, or undefined if the wait was ended
 */
export async function lockFile(file: string, isOver = () => false): Promise<(() => void) | undefined> {
  const lock = await openLock(file);
  try {
    while (!tryExclusive(lock)) {
      if (isOver()) {
        lock.close();
        return undefined;
      }
      await sleep(RETRY_MS);
    }
  } catch (error) {
    lock.close();
    throw error;
  }
  return () => lock.close();
}

/**
 * Waits for the right to create, start and stop the server, which one process has at a time.
 * @returns a function that gives it up
 */
export async function lockFolder({ root }: Folder): Promise<() => void> {
  return (await lockFile(join(root, 'postgres.lock'))) as () => void;
}

/**
 * A shared lock that every process holds for as long as it uses the database. Change it under
 * `lockFolder` only.
 */
export class UseLock {
  readonly #lock: DatabaseSync;

  private constructor(lock: DatabaseSync) {
    this.#lock = lock;
  }

  static async open(folder: Folder): Promise<UseLock> {
    return new UseLock(await openLock(join(folder.root, 'postgres.use')));
  }

  /** Takes the lock; once is enough. */
  hold(): void {
    if (this.#lock.isTransaction) return;
    this.#lock.exec('begin');
    // The first read takes the lock, and the open transaction keeps it.
    this.#lock.prepare('select count(*) from sqlite_schema').get();
  }

  /** Releases the lock, and returns whether nobody else holds it. */
  release(): boolean {
    if (this.#lock.isTransaction) this.#lock.exec('rollback');
    const isAlone = tryExclusive(this.#lock);
    if (isAlone) this.#lock.exec('rollback');
    return isAlone;
  }

  close(): void {
    this.#lock.close();
  }
}
