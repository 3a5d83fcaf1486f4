import type { Command } from 'commander';
import { readStatus } from '../db/status.ts';
import { withService } from './open.ts';
import { id, printFields, printJson, printTable } from './output.ts';

export function registerStatus(program: Command): void {
  program
    .command('status')
    .description('show which kind of database this is, its versions, and its shards with their sizes')
    .option('--json', 'print JSON')
    .action(run);
}

const MEGABYTE = 1_048_576n;

async function run(options: { json?: boolean }): Promise<void> {
  await withService(async ({ db }) => {
    const { kind, serverVersion, citusVersion, schema, bytes, buckets } = await readStatus(db);
    if (options.json)
      return printJson({
        kind,
        serverVersion,
        citusVersion,
        schema,
        bytes: Number(bytes),
        buckets: buckets.map((each) => ({
          bucket: each.bucket,
          shardId: id(each.shardId),
          worker: each.worker,
          bytes: each.bytes === null ? null : Number(each.bytes),
        })),
      });
    printFields({
      database: kind === 'citus' ? 'distributed by Citus' : 'one PostgreSQL server',
      PostgreSQL: serverVersion,
      Citus: citusVersion ?? 'no',
      schema,
      [kind === 'citus' ? 'size of the coordinator' : 'size']: `${bytes / MEGABYTE} MB`,
      ...(kind === 'citus' && { buckets: String(buckets.length) }),
    });
    if (kind === 'citus')
      printTable(
        ['bucket', 'shard', 'worker', 'MB'],
        buckets.map(({ bucket, shardId, worker, bytes: size }) => [
          String(bucket),
          String(shardId),
          worker,
          size === null ? 'unknown' : String(size / MEGABYTE),
        ]),
      );
  });
}
