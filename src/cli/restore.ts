import type { Command } from 'commander';
import { type Config, readConfig } from '../config.ts';
import { type Backup, listEmbeddedBackups, readBackedUpKeys, restoreEmbedded } from '../db/embedded.ts';
import { openOwner } from '../db/pool.ts';
import { createKeyFile, keyFile } from '../keyring/file.ts';
import { checkBeforeMigration, readKeyRingText } from '../keyring/store.ts';
import { described, requireEmbedded, troubleLog } from './backup.ts';
import { fail, printJson, say } from './output.ts';
import { parseStart } from './parse.ts';

type RestoreOptions = { to?: string; replace?: boolean; archive: boolean; json?: boolean };

export function registerRestore(program: Command): void {
  program
    .command('restore')
    .description(
      'restore a backup, with the log that was archived since, into the data folder; stop Scrip first',
    )
    .argument('<dir>', 'the folder that holds the backups, or one of them; or s3://bucket/prefix')
    .option('--to <time>', 'leave out what was committed after this time (default: restore everything)')
    .option('--replace', 'replace a database in the data folder, which is kept beside it')
    .option('--no-archive', 'restore the backup only, without the archived log')
    .option('--json', 'print JSON')
    .action(run);
}

async function run(dir: string, options: RestoreOptions): Promise<void> {
  const to = options.to === undefined ? undefined : parseStart(options.to, '--to');
  const config = readConfig();
  requireEmbedded(config);
  const keys = await findKeyRingFor(dir, config);
  const archiveDir = options.archive ? config.archiveDir : null;
  const wanted = { archiveDir, to, replace: options.replace ?? false };
  const restored = await restoreEmbedded(
    dir,
    config.dataDir,
    wanted,
    troubleLog(config),
    async ({ ownerUrl }) => {
      const owner = await openOwner(ownerUrl);
      await checkBeforeMigration(owner, keys.given, false).finally(() => owner.close());
    },
  );
  // Last: a key file without its database would prevent a new start.
  if (keys.fromBackup !== undefined) await createKeyFile(keyFile(config), keys.fromBackup);
  const { backup, lastTransactionAt, isShort, replaced } = restored;
  if (options.json)
    return printJson({ backup: described(backup), lastTransactionAt, isShort, replaced: replaced ?? null });
  say(
    `restored the backup of ${backup.manifest.endedAt}; the last transaction in it is of ${lastTransactionAt.toISOString()}`,
  );
  if (isShort) say('The archived log ends there, before the time that was asked for.');
  if (replaced !== undefined)
    say(`The database that was replaced is kept in ${replaced}: remove it when you need it no longer.`);
  say('Next: scrip reconcile, then scrip serve.');
}

type Keys = {
  given: Config;
  fromBackup: string | undefined;
};

/**
 * The key ring for the restored database: the configured one, else the one in the backup.
 * @throws CommandError if there is none: without it no voucher could be used
 */
async function findKeyRingFor(dir: string, config: Config): Promise<Keys> {
  if ((await readKeyRingText(config)) !== undefined) return { given: config, fromBackup: undefined };
  const backup: Backup | undefined = (await listEmbeddedBackups(dir)).at(-1);
  const fromBackup = backup && (await readBackedUpKeys(backup));
  if (backup && fromBackup === undefined)
    fail(
      `the key ring is missing, and the backup holds none: set SCRIP_KEYS, or put the key file back at ${keyFile(config).path}`,
    );
  return { given: { ...config, keys: fromBackup, keysFile: undefined }, fromBackup };
}
