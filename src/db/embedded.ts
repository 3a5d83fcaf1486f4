import {
  type Authenticator,
  authenticate,
  type Backup,
  backUp,
  type Embedded,
  EmbeddedError,
  find,
  findForeignTimeline,
  isLogWaiting,
  listBackups,
  makeFolder,
  type Restored,
  type RestoreOptions,
  type Restoring,
  readKeys,
  requireOwn,
  restore,
  start,
  verify,
  type Writer,
} from '@scrip/embedded';
import type { Logger } from '../log.ts';
import { StartError } from './errors.ts';
import { SERVICE_ROLE } from './session.ts';

export type { Authenticator, Backup, Embedded, Writer };
export { findForeignTimeline, isLogWaiting };

/** The embedded database of a data folder, with the settings of Scrip. */

const NAMES = { database: 'scrip', user: SERVICE_ROLE } as const;

const ALTERNATIVES = {
  folder: ' (to use another folder, set SCRIP_DATA_DIR)',
  dump: ', or move the data: docs/how-to/upgrade.md',
  server: ' (to use a PostgreSQL server instead, set SCRIP_DATABASE_URL)',
} as const;

/**
 * Uses the database of a data folder, which is created if it does not exist, until `release` is called.
 * @throws StartError, one line
 */
export function openEmbedded(dataDir: string, log: Logger): Promise<Embedded> {
  return start(dataDir, { ...NAMES, log }).catch(explain);
}

/** Archives the log of a database, or no longer if `archiveDir` is undefined. @throws StartError, one line */
export function archiveLog(
  embedded: Embedded,
  archiveDir: string | undefined,
  keys: Authenticator,
): Promise<void> {
  return embedded.archive(archiveDir, keys).catch(explain);
}

/** Returns the address of a data folder's database, running or not; undefined if there is none yet. */
export function findEmbedded(dataDir: string): Promise<string | undefined> {
  return find(dataDir, NAMES).catch(explain);
}

/** Creates the data folder, if it does not exist. @throws StartError, one line */
export async function makeDataFolder(dataDir: string): Promise<void> {
  await makeFolder(dataDir).catch(explain);
}

/** Refuses a file of another account in the data folder. @throws StartError, one line */
export async function requireOwnFile(path: string, what: string): Promise<void> {
  await requireOwn(path, what).catch(explain);
}

/** Checks that a text has a tag of a key that this installation holds. @throws StartError, one line */
export function requireAuthentic(...parameters: Parameters<typeof authenticate>): void {
  try {
    authenticate(...parameters);
  } catch (error) {
    explain(error);
  }
}

/** Backs up a database that is in use. @throws StartError, one line */
export function backUpEmbedded(...parameters: Parameters<typeof backUp>): Promise<Backup> {
  return backUp(...parameters).catch(explain);
}

/** Lists the complete backups of a folder, oldest first. @throws StartError, one line */
export function listEmbeddedBackups(path: string): Promise<Backup[]> {
  return listBackups(path).catch(explain);
}

type Examine = Restoring['examine'];

/**
 * Restores a backup into a data folder that is not in use.
 * @throws StartError, one line; what `examine` throws
 */
export function restoreEmbedded(
  from: string,
  dataDir: string,
  options: Pick<RestoreOptions, 'archiveDir' | 'to' | 'timeline' | 'replace' | 'writer'>,
  log: Logger,
  examine: Examine,
): Promise<Restored> {
  return restore(from, dataDir, { ...NAMES, ...options, log, examine }).catch(explain);
}

/** Starts a copy of the newest backup and examines it. @throws as `restoreEmbedded` */
export function verifyEmbedded(
  from: string,
  writer: Writer,
  log: Logger,
  examine: Examine,
): ReturnType<typeof verify> {
  return verify(from, { ...NAMES, writer, log, examine }).catch(explain);
}

/** Returns the text of the key ring in a backup, if it contains one. @throws StartError, one line */
export function readBackedUpKeys(backup: Backup): Promise<string | undefined> {
  return readKeys(backup).catch(explain);
}

function explain(error: unknown): never {
  if (!(error instanceof EmbeddedError)) throw error;
  throw new StartError(`${error.message}${error.alternative ? ALTERNATIVES[error.alternative] : ''}`);
}
