import { type Embedded, EmbeddedError, find, makeFolder, start } from '@scrip/embedded';
import type { Logger } from '../log.ts';
import { StartError } from './errors.ts';
import { SERVICE_ROLE } from './pool.ts';

export type { Embedded };

/** The embedded database of a data folder, with the settings of Scrip. */

const NAMES = { database: 'scrip', user: SERVICE_ROLE } as const;

const ALTERNATIVES = {
  folder: ' (to use another folder, set SCRIP_DATA_DIR)',
  server: ' (to use a PostgreSQL server instead, set SCRIP_DATABASE_URL)',
} as const;

/**
 * Uses the database of a data folder, created if there is none, until `release` is called.
 * @throws StartError, one line
 */
export function openEmbedded(dataDir: string, log: Logger): Promise<Embedded> {
  return start(dataDir, { ...NAMES, log }).catch(explain);
}

/** The address of a data folder's database, whether it runs or not; undefined where there is none yet. */
export function findEmbedded(dataDir: string): Promise<string | undefined> {
  return find(dataDir, NAMES).catch(explain);
}

/** Creates the data folder, if it does not exist. @throws StartError, one line */
export async function makeDataFolder(dataDir: string): Promise<void> {
  await makeFolder(dataDir).catch(explain);
}

function explain(error: unknown): never {
  if (!(error instanceof EmbeddedError)) throw error;
  throw new StartError(`${error.message}${error.alternative ? ALTERNATIVES[error.alternative] : ''}`);
}
