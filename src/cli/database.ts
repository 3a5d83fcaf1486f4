import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { findEmbedded } from '../db/embedded.ts';
import { noDatabase } from './open.ts';

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
