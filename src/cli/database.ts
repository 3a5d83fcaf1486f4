import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { findEmbedded } from '../db/embedded.ts';
import { migrateOnly, noDatabase } from './open.ts';
import { printJson, say } from './output.ts';

export function registerDb(program: Command): void {
  const db = program.command('db').description('the database');
  db.command('url').description('print the connection address in use, password included').action(url);
}

async function url(): Promise<void> {
  const { databaseUrl, dataDir } = readConfig();
  const address = databaseUrl ?? (await findEmbedded(dataDir));
  if (address === undefined) throw noDatabase(dataDir);
  process.stdout.write(`${address}\n`);
}

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('apply the migrations of the database schema, as `scrip serve` does; needs no key ring')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const applied = await migrateOnly();
      if (options.json) return printJson({ applied });
      for (const name of applied) say(name);
      say('the schema is up to date');
    });
}
