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
  lockFile,
  makeFolder,
  type RestoreOptions,
  readKeys,
  requireOwn,
  restore,
  SENDER_LOCK,
  start,
  verify,
  type Writer,
} from '@scrip/embedded';
import type { Logger } from '../log.ts';
import { StartError } from './errors.ts';
import { SERVICE_ROLE } from './session.ts';

export type { Authenticator, Backup, Embedded, Writer };
export { findForeignTimeline, isLogWaiting, lockFile, SENDER_LOCK };

/** The embedded database of a data folder, with the settings of Scrip. Its errors are StartErrors. */

const NAMES = { database: 'scrip', user: SERVICE_ROLE } as const;

const ALTERNATIVES = {
  folder: ' (to use another folder, set SCRIP_DATA_DIR)',
  dump: ', or move the data: docs/how-to/upgrade.md',
  server: ' (to use a PostgreSQL server instead, set SCRIP_DATABASE_URL)',
} as const;

/** Returns the same function, whose errors say what an operator of Scrip can do. */
const explained =
  <Given extends unknown[], Result>(run: (...given: Given) => Promise<Result>) =>
  (...given: Given): Promise<Result> =>
    run(...given).catch((error: unknown) => {
      if (!(error instanceof EmbeddedError)) throw error;
      throw new StartError(`${error.message}${error.alternative ? ALTERNATIVES[error.alternative] : ''}`);
    });

/** Uses the database of a data folder, which is created if it does not exist, until `release` is called. */
export const openEmbedded = explained((dataDir: string, log: Logger) => start(dataDir, { ...NAMES, log }));

/** Archives the log of a database, or no longer if `archiveDir` is undefined. */
export const archiveLog = explained(
  (embedded: Embedded, archiveDir: string | undefined, keys: Authenticator) =>
    embedded.archive(archiveDir, keys),
);

/** Returns the address of a data folder's database, running or not; undefined if there is none yet. */
export const findEmbedded = explained((dataDir: string) => find(dataDir, NAMES));

/** Creates the data folder, if it does not exist. */
export const makeDataFolder = explained(makeFolder);

/** Refuses a file of another account in the data folder. */
export const requireOwnFile = explained(requireOwn);

/** Checks that a text has a tag of a key that this installation holds. */
export const requireAuthentic = explained(async (...given: Parameters<typeof authenticate>) =>
  authenticate(...given),
);

/** Backs up a database that is in use. */
export const backUpEmbedded = explained(backUp);

/** Lists the complete backups of a folder, oldest first. */
export const listEmbeddedBackups = explained(listBackups);

/** Returns the text of the key ring in a backup, if it contains one. */
export const readBackedUpKeys = explained(readKeys);

type Restoring = Omit<RestoreOptions, keyof typeof NAMES>;

/** Restores a backup into a data folder that is not in use. It also throws what `examine` throws. */
export const restoreEmbedded = explained((from: string, dataDir: string, options: Restoring) =>
  restore(from, dataDir, { ...NAMES, ...options }),
);

/** Starts a copy of the newest backup and examines it. It also throws what `examine` throws. */
export const verifyEmbedded = explained(
  (from: string, options: Pick<Restoring, 'writer' | 'log' | 'signal' | 'examine'>) =>
    verify(from, { ...NAMES, ...options }),
);
