import { constants } from 'node:os';
import type { Command } from 'commander';
import { type Config, readConfig } from '../config.ts';
import { readBuckets } from '../db/buckets.ts';
import { openClock } from '../db/clock.ts';
import {
  type Backup,
  backUpEmbedded,
  listEmbeddedBackups,
  openEmbedded,
  readBackedUpKeys,
  restoreEmbedded,
  verifyEmbedded,
  type Writer,
} from '../db/embedded.ts';
import { StartError } from '../db/errors.ts';
import { migrate } from '../db/migrate.ts';
import { openDatabase, openOwner } from '../db/pool.ts';
import { createKeyFile, keyFile } from '../keyring/file.ts';
import { checkBeforeMigration, findKeyRing, readKeyRingText, requireKeyRing } from '../keyring/store.ts';
import { type Reconciliation, reconcile } from '../ledger/reconcile.ts';
import { noteBackup } from '../monitor/status.ts';
import { lowerPriority } from '../priority.ts';
import { findDatabase, troubleLog } from './open.ts';
import {
  fail,
  interrupted,
  interruption,
  numberOf,
  printFields,
  printJson,
  printTable,
  say,
} from './output.ts';
import { countOf, parseUtc } from './parse.ts';
import { listenForStop, type Stop } from './signals.ts';
import { readVersion } from './usage.ts';

const KEEP_MAX = 10_000;
const TIMELINE_MAX = 2 ** 32 - 1;

type Json = { json?: boolean };

/** The option by which the operator vouches for what the key ring does not prove. */
export const TRUST = [
  '--trust',
  'accept what the key ring does not prove to be unchanged: if it was changed, it can run programs as this account',
] as const;

export type Trusting = { trust?: boolean | undefined };

/** Adds the commands of the embedded database to `backup`. */
export function addBackups(backup: Command): void {
  backup
    .command('create', { isDefault: true })
    .description('back up the database while it is in use; `scrip backup DIR` does the same')
    .argument('<dir>', 'the folder with the backups, or s3://bucket/prefix')
    .option('--with-keys', 'put the key ring into the backup: with it, anybody can spend every voucher')
    .option('--keep <n>', 'remove older backups until this many are left', countOf('--keep', 1, KEEP_MAX))
    .option('--json', 'print JSON')
    .action(create);
  backup
    .command('verify')
    .description(
      'check the newest backup: its checksums, a start of a copy, and its books; exit status 1 if they differ',
    )
    .argument('<dir>', 'the folder with the backups, or one of them; or s3://bucket/prefix')
    .option(...TRUST)
    .option('--json', 'print JSON')
    .action(check);
  backup
    .command('list')
    .description('list the backups of a folder')
    .argument('<dir>', 'the folder with the backups, or s3://bucket/prefix')
    .option('--json', 'print JSON')
    .action(list);
}

/** Checks that the database is the embedded one. @throws CommandError if it is not */
function requireEmbedded({ databaseUrl }: Config): void {
  if (databaseUrl !== undefined)
    fail(
      'this is for the embedded database only, and SCRIP_DATABASE_URL is set: back up your PostgreSQL server with its ' +
        'own tools (docs/how-to/back-up.md)',
    );
}

type CreateOptions = Json & { withKeys?: boolean; keep?: number };

async function create(dir: string, options: CreateOptions): Promise<void> {
  const { keep } = options;
  const config = readConfig();
  requireEmbedded(config);
  const { dataDir } = config;
  await findDatabase(config);
  const writer = await requireKeyRing(config);
  const keys = options.withKeys ? await readKeyRingText(config) : undefined;
  const stop = listenForStop();
  const log = troubleLog(config);
  const embedded = await openEmbedded(dataDir, log);
  try {
    // The calls of tills come first. At the lowest priority, a busy machine would starve a backup.
    lowerPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    const { ownerUrl } = embedded;
    const making = backUpEmbedded(dataDir, dir, { ownerUrl, version: readVersion(), writer, keys, keep });
    const backup = await Promise.race([
      making,
      stop.asked.then(() => interrupted('interrupted: no backup was made')),
    ]);
    const made = described(backup);
    await noteBackup(dataDir, { endedAt: made.endedAt, path: made.path, bytes: made.bytes }).catch(
      (error: Error) => log.warn({ error: error.message }, 'the backup is complete, but is not recorded'),
    );
    if (options.json) return printJson(made);
    say(
      `backed up to ${made.path} (${numberOf(made.files, 'file')}, ${Math.ceil(made.bytes / 1024 ** 2)} MB)`,
    );
    if (!made.withKeys) say('The key ring is not in it: keep a copy of it apart from the backups.');
  } finally {
    await embedded.release();
  }
}

/** Returns the fields of a backup that commands print. */
function described({ path, manifest }: Backup) {
  const { startedAt, endedAt, version, files, bytes, withKeys } = manifest;
  return { path, startedAt, endedAt, version, files, bytes, withKeys };
}

async function list(dir: string, options: Json): Promise<void> {
  const backups = (await listEmbeddedBackups(dir)).map(described);
  if (options.json) return printJson(backups);
  printTable(
    ['ended', 'MB', 'key ring', 'version', 'path'],
    backups.map(({ endedAt, bytes, withKeys, version, path }) => [
      endedAt,
      String(Math.ceil(bytes / 1024 ** 2)),
      withKeys ? 'in it' : '-',
      version,
      path,
    ]),
    ['path'],
  );
}

/** Returns whose backups and dumps are accepted: those that were made with the key ring, or any. */
export async function acceptedWriter(config: Config, { trust }: Trusting): Promise<Writer> {
  const verify = () => {
    throw new StartError(
      'there is no key ring to prove that this is unchanged: set SCRIP_KEYS, or put the key file back at ' +
        `${keyFile(config).path}; --trust accepts it as it is`,
    );
  };
  return trust ? 'anybody' : ((await findKeyRing(config)) ?? { verify });
}

async function check(dir: string, options: Json & Trusting): Promise<void> {
  const config = readConfig();
  const writer = await acceptedWriter(config, options);
  let books: Reconciliation | undefined;
  const { backup, lastTransactionAt } = await verifyEmbedded(dir, {
    writer,
    signal: signalOf(listenForStop()),
    log: troubleLog(config),
    async examine({ url, ownerUrl }) {
      // Its schema may be older than this program.
      await migrate(ownerUrl);
      books = await readBooks(url);
    },
  });
  const ok = books?.ok === true;
  if (!ok) process.exitCode = 1;
  const differing = (books?.checks ?? []).filter((each) => !each.ok);
  if (options.json) return printJson({ ok, ...described(backup), lastTransactionAt, checks: books?.checks });
  printFields({ backup: backup.path, 'last transaction': lastTransactionAt, files: backup.manifest.files });
  for (const { name } of differing) say(`${name} differs: restore it elsewhere and run \`scrip reconcile\``);
  say(ok ? 'The backup is complete, starts, and its books agree.' : 'The books of the backup differ.');
}

/** Returns a signal that ends the work on a copy once the command is asked to stop. */
function signalOf(stop: Stop): AbortSignal {
  const controller = new AbortController();
  void stop.asked.then(() => controller.abort(interruption()));
  return controller.signal;
}

/** Reconciles a database that nothing else uses. */
export async function readBooks(url: string): Promise<Reconciliation> {
  const db = openDatabase(url, 'scrip-verify');
  try {
    return await reconcile({ db, buckets: await readBuckets(db), clock: (await openClock(db)).now });
  } finally {
    await db.close();
  }
}

type RestoreOptions = Json & Trusting & { to?: Date; timeline?: number; replace?: boolean; archive: boolean };

export function registerRestore(program: Command): void {
  program
    .command('restore')
    .description(
      'restore a backup, with the log that was archived since, into the data folder; stop Scrip first',
    )
    .argument('<dir>', 'the folder with the backups, or one of them; or s3://bucket/prefix')
    .option(
      '--to <time>',
      'leave out transactions committed after this time (default: restore everything)',
      (text) => parseUtc(text, '--to'),
    )
    .option(
      '--timeline <n>',
      'follow this timeline of the archived log (default: the newest)',
      countOf('--timeline', 1, TIMELINE_MAX),
    )
    .option('--replace', 'replace the database in the data folder, which is kept next to the new one')
    .option('--no-archive', 'restore the backup only, without the archived log')
    .option(...TRUST)
    .option('--json', 'print JSON')
    .action(run);
}

async function run(dir: string, options: RestoreOptions): Promise<void> {
  const { to, timeline, replace = false } = options;
  const config = readConfig();
  requireEmbedded(config);
  const writer = await acceptedWriter(config, options);
  const keys = await findKeyRingFor(dir, config);
  const archiveDir = options.archive ? config.archiveDir : null;
  const restored = await restoreEmbedded(dir, config.dataDir, {
    ...{ archiveDir, to, timeline, replace, writer },
    signal: signalOf(listenForStop()),
    log: troubleLog(config),
    async examine({ ownerUrl }) {
      const owner = await openOwner(ownerUrl);
      await checkBeforeMigration(owner, keys.given, false).finally(() => owner.close());
    },
  });
  // Last, since a key file without its database would prevent a new start.
  if (keys.fromBackup !== undefined) await createKeyFile(keyFile(config), keys.fromBackup);
  const { backup, lastTransactionAt, isShort, replaced, ownSettings } = restored;
  const { endedAt, path, bytes } = described(backup);
  // If the data folder was lost, so was the record. The backup is there, and may be old enough to say so.
  await noteBackup(config.dataDir, { endedAt, path, bytes });
  const forks = restored.forks.map(({ timeline, leftOutFrom = null }) => ({ timeline, leftOutFrom }));
  if (options.json)
    return printJson({
      backup: described(backup),
      lastTransactionAt,
      isShort,
      forks,
      replaced: replaced ?? null,
      ownSettings: ownSettings ?? null,
    });
  say(
    `restored the backup of ${backup.manifest.endedAt}; the last transaction in it is of ${lastTransactionAt.toISOString()}`,
  );
  if (isShort) say('The archived log ends there, before the time that was asked for.');
  for (const { timeline, leftOutFrom } of forks)
    say(
      `An earlier restore is followed: what timeline ${timeline} of the log recorded after it` +
        `${leftOutFrom ? ` (from ${leftOutFrom.toISOString()} on)` : ''} is left out. To follow that one: --timeline ${timeline}.`,
    );
  if (replaced !== undefined)
    say(`The database that was replaced is kept in ${replaced}: remove it when you need it no longer.`);
  if (ownSettings !== undefined)
    say(
      `Settings of your own for PostgreSQL are not in force. They are in ${ownSettings}: put back what you need.`,
    );
  say('Next: scrip reconcile, then scrip serve.');
}

type Keys = {
  given: Config;
  fromBackup: string | undefined;
};

/**
 * Finds the key ring for the restored database: the configured one, otherwise the one in the backup.
 * @throws CommandError if there is none: without it, no voucher could be used
 */
async function findKeyRingFor(dir: string, config: Config): Promise<Keys> {
  if ((await readKeyRingText(config)) !== undefined) return { given: config, fromBackup: undefined };
  const backup: Backup | undefined = (await listEmbeddedBackups(dir)).at(-1);
  const fromBackup = backup && (await readBackedUpKeys(backup));
  if (backup && fromBackup === undefined)
    throw new StartError(
      `the key ring is missing, and the backup contains none: set SCRIP_KEYS, or put the key file back at ${keyFile(config).path}`,
    );
  return { given: { ...config, keys: fromBackup, keysFile: undefined }, fromBackup };
}
