import type { Command } from 'commander';
import { migrateOnly } from './open.ts';

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('bring the database schema up to date; `serve` does it too. It needs no key ring')
    .action(async () => {
      const applied = await migrateOnly();
      for (const name of applied) process.stdout.write(`${name}\n`);
      process.stdout.write('the schema is up to date\n');
    });
}
