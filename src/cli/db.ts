import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { findEmbedded } from '../db/embedded.ts';
import { openService } from './open.ts';

export function registerDb(program: Command): void {
  const db = program.command('db').description('the database');
  db.command('url').description('print the connection address in use, password included').action(url);
}

async function url(): Promise<void> {
  const config = readConfig();
  let address = config.databaseUrl ?? (await findEmbedded(config.dataDir));
  if (address === undefined) {
    // There is none yet: made now, so that the address that is printed is one that will be.
    const opened = await openService('scrip-command');
    address = opened.service.db.url;
    await opened.close();
  }
  process.stdout.write(`${address}\n`);
}
