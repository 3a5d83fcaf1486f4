import type { Command } from 'commander';
import { distributeOnly, migrateOnly } from './open.ts';
import { printJson, say, wrongUsage } from './output.ts';
import { parseCount } from './parse.ts';

type Options = { readonly json?: boolean; readonly distribute?: boolean; readonly buckets?: string };

/** The slots of a serial number bound the buckets (src/db/buckets.ts). */
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
    .option('--buckets <n>', 'with --distribute: into how many parts, from 2 to 64 (default: 64)')
    .option('--json', 'print JSON')
    .action(run);
}

async function run({ json, distribute, buckets }: Options): Promise<void> {
  if (buckets !== undefined && !distribute) wrongUsage('--buckets belongs to --distribute');
  const wanted =
    buckets === undefined ? undefined : parseCount(buckets, '--buckets', BUCKETS_MIN, BUCKETS_MAX);
  const applied = await migrateOnly();
  if (!distribute) {
    if (json) return printJson({ applied });
    for (const name of applied) say(name);
    return say('the schema is up to date');
  }
  const done = await distributeOnly(wanted);
  if (json) return printJson({ applied, distributed: done });
  for (const name of applied) say(name);
  const already = done.isNew ? '' : ' already';
  say(`the database is distributed${already}: ${done.buckets} buckets on ${done.workers} workers`);
}
