import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { archiveMonths } from '../db/archive.ts';
import { distribute } from '../db/distribute.ts';
import { dump, load, openDump } from '../db/dump.ts';
import { StartError } from '../db/errors.ts';
import { migrate } from '../db/migrate.ts';
import { checkBeforeMigration, findKeyRing } from '../keyring/store.ts';
import { acceptedWriter, readBooks, TRUST, type Trusting } from './backup.ts';
import { asOwner, findDatabase } from './open.ts';
import { numberOf, printJson, say, wrongUsage } from './output.ts';
import { countOf, parseDay } from './parse.ts';
import { readVersion } from './usage.ts';

type Json = { json?: boolean };

export function registerDb(program: Command): void {
  const db = program.command('db').description('the database');
  db.command('url').description('print the connection address in use, password included').action(url);
  db.command('dump')
    .description('write everything into a folder, for another version of PostgreSQL; stop Scrip first')
    .argument('<dir>', 'a new folder')
    .option('--json', 'print JSON')
    .action(dumpAll);
  db.command('load')
    .description('load a dump into an empty database, and reconcile it; exit status 1 if it differs')
    .argument('<dir>', 'the folder of the dump')
    .option(...TRUST)
    .option('--json', 'print JSON')
    .action(loadAll);
  db.command('archive')
    .description('move old months of the journal to a tablespace on a cheaper disk, while the service runs')
    .requiredOption('--before <day>', 'months that ended before this day', (text) =>
      parseDay(text, '--before'),
    )
    .requiredOption('--tablespace <name>', 'a tablespace of your PostgreSQL server')
    .option('--json', 'print JSON')
    .action(archive);
}

async function url(): Promise<void> {
  process.stdout.write(`${await findDatabase(readConfig())}\n`);
}

async function dumpAll(dir: string, { json }: Json): Promise<void> {
  const config = readConfig();
  await findDatabase(config);
  const writer = await findKeyRing(config);
  const { tables, takenAt, postgres } = await asOwner(config, (ownerUrl) =>
    dump(ownerUrl, dir, readVersion(), writer),
  );
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  if (json) return printJson({ path: dir, takenAt, postgres, tables: tables.length, rows, bytes });
  say(
    `dumped ${numberOf(rows, 'row')} of PostgreSQL ${postgres} into ${dir} (${Math.ceil(bytes / 1024 ** 2)} MB)`,
  );
  say('The key ring is not in it: it is needed with what is loaded.');
  if (!writer) say('Without a key ring nothing proves who wrote the dump: it is loaded by --trust only.');
}

async function loadAll(dir: string, { json, trust }: Json & Trusting): Promise<void> {
  const config = readConfig();
  // First, so that a folder which is not a dump creates no database.
  const whole = await openDump(dir, await acceptedWriter(config, { trust }));
  const books = await asOwner(config, async (ownerUrl, serviceUrl) => {
    await load(ownerUrl, whole);
    return readBooks(serviceUrl);
  });
  if (!books.ok) process.exitCode = 1;
  const { takenAt, version, tables } = whole.manifest;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  if (json) return printJson({ ok: books.ok, takenAt, version, rows, checks: books.checks });
  say(`loaded ${numberOf(rows, 'row')}, dumped by Scrip ${version} at ${takenAt}`);
  for (const { name } of books.checks.filter((each) => !each.ok)) say(`${name} differs: see scrip reconcile`);
  say(books.ok ? 'The books agree. Next: scrip serve, with the key ring in place.' : 'The books differ.');
}

async function archive({ json, ...wanted }: Json & { before: string; tablespace: string }): Promise<void> {
  const config = readConfig();
  if (config.databaseUrl === undefined)
    throw new StartError(
      'the embedded database has one folder, which its backups copy: archive needs a PostgreSQL server of your own',
    );
  const archived = await asOwner(config, (url) =>
    archiveMonths(url, wanted, ({ month, rows }) => json || say(`${month}: ${numberOf(rows, 'row')}`)),
  );
  if (json) return printJson(archived);
  if (archived.length === 0) say(`there is no month to move before ${wanted.before}`);
}

type Options = { readonly json?: boolean; readonly distribute?: boolean; readonly buckets?: number };

/** The number of slots limits the number of buckets (src/db/buckets.ts). */
const BUCKETS_MIN = 2;
const BUCKETS_MAX = 64;

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('apply the migrations of the database schema, as `scrip serve` does; needs no key ring')
    .option(
      '--distribute',
      'spread the tables over the workers of a Citus cluster, once (docs/how-to/citus.md)',
    )
    .option(
      '--buckets <n>',
      'with --distribute: into how many parts, from 2 to 64 (default: 2 for each worker)',
      countOf('--buckets', BUCKETS_MIN, BUCKETS_MAX),
    )
    .option('--json', 'print JSON')
    .action(run);
}

/** It needs no key ring, but a given one must belong to the database. */
async function run({ json, distribute: isDistributing, buckets }: Options): Promise<void> {
  if (buckets !== undefined && !isDistributing) wrongUsage('--buckets belongs to --distribute');
  const config = readConfig();
  if (isDistributing && config.databaseUrl === undefined)
    throw new StartError(
      'the embedded database cannot be distributed: set SCRIP_DATABASE_URL to the coordinator of a Citus cluster',
    );
  const { applied, distributed } = await asOwner(config, async (url) => ({
    applied: await migrate(url, (owner) => checkBeforeMigration(owner, config, true)),
    ...(isDistributing && { distributed: await distribute(url, buckets) }),
  }));
  if (json) return printJson({ applied, distributed });
  for (const name of applied) say(name);
  if (!distributed) return say('the schema is up to date');
  const { isNew, buckets: count, workers } = distributed;
  say(`the database is distributed${isNew ? '' : ' already'}: ${count} buckets on ${workers} workers`);
}
