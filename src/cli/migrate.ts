import type { Command } from 'commander';
import { migrateOnly } from './open.ts';
import { printJson, say } from './output.ts';

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
