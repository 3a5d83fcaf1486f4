import type { Command } from 'commander';
import { withService } from './open.ts';

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('bring the database schema up to date; `serve` does it too')
    // Every command opens the service with its schema up to date: there is nothing left to do but to say so.
    .action(() => withService(async () => void process.stdout.write('the schema is up to date\n')));
}
