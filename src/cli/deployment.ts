import type { Config } from '../config.ts';
import { CONNECTIONS_MAX } from '../db/pool.ts';
import { keyFile, ownKeyFile } from '../keyring/file.ts';
import { isExposed } from '../keyring/store.ts';
import type { Deployment } from '../monitor/doctor.ts';
import { readVersion } from './usage.ts';

/**
 * Connections in addition to those for calls: for background work, for operators and people who sign in, and
 * one that keeps the embedded database running.
 */
const CONNECTIONS_BESIDE = 12;

/** Returns what a process with these settings stands on. The key file is looked at now. */
export async function deploymentOf(config: Config): Promise<Deployment> {
  return {
    version: readVersion(),
    dataDir: config.databaseUrl === undefined ? config.dataDir : undefined,
    archiveDir: config.archiveDir,
    keyRing: {
      file: config.keys === undefined ? keyFile(config).path : undefined,
      isOwn: ownKeyFile(config) !== undefined,
      isExposed: await isExposed(config),
    },
    connectionsMax: CONNECTIONS_MAX + CONNECTIONS_BESIDE,
    network: config,
  };
}
