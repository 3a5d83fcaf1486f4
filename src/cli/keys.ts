import { access } from 'node:fs/promises';
import type { Config } from '../config.ts';
import type { Service } from '../context.ts';
import { keyFile } from '../keyring/file.ts';
import { isExposed, openKeyRing } from '../keyring/store.ts';
import type { Logger } from '../log.ts';

/**
 * Opens the key ring, which a first start makes; with a database elsewhere it is easily lost, so the log
 * says where it is.
 */
export async function openKeys(db: Service['db'], config: Config, log: Logger): Promise<Service['keys']> {
  const { path: file } = keyFile(config);
  const isGiven = config.keys !== undefined || config.keysFile !== undefined;
  const isElsewhere = config.databaseUrl !== undefined && !isGiven;
  const existed = await access(file).then(
    () => true,
    () => false,
  );
  const keys = await openKeyRing(db, config);
  if (await isExposed(config)) log.warn({ file }, 'the key file can be read by other accounts: chmod 600');
  if (isElsewhere && !existed) {
    log.warn(
      { file },
      `SCRIP_KEYS is not set, so a new key ring was written to ${file}. Back this file up apart from the database: ` +
        'without it no code can be read again. Every other process needs the same keys (`scrip keyring make` prints ' +
        'a key for SCRIP_KEYS)',
    );
  }
  return keys;
}
