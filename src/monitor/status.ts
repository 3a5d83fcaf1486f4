import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDistributed } from '../db/distribute.ts';
import { StartError } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { listPlaces, type Place } from '../db/workers.ts';

/** A bucket of a distributed database. Its shards of all tables are on one worker, and move together. */
type BucketStatus = Pick<Place, 'bucket' | 'shardId' | 'worker'> & {
  /** Null if the workers cannot be asked. */
  readonly bytes: number | null;
};

type DatabaseStatus = {
  readonly kind: 'postgresql' | 'citus';
  readonly serverVersion: string;
  readonly citusVersion: string | null;
  /** The name of the newest migration. */
  readonly schema: string;
  /** The size on the server, or on the coordinator. */
  readonly bytes: number;
  /** Empty on a single server. */
  readonly buckets: readonly BucketStatus[];
};

type Server = Pick<DatabaseStatus, 'serverVersion' | 'citusVersion' | 'schema' | 'bytes'>;

/** Reads the kind, the versions and the sizes of the database. */
export async function readStatus(db: Queries): Promise<DatabaseStatus> {
  const [row] = await db.query<Server>(sql`
select current_setting('server_version') as "serverVersion",
  (select extversion from pg_extension where extname = 'citus') as "citusVersion",
  (select name from migrations order by version desc limit 1) as schema,
  pg_database_size(current_database())::float8 as bytes`);
  const server = row as Server;
  if (!(await isDistributed(db))) return { kind: 'postgresql', ...server, buckets: [] };
  const [places, sizes] = [await listPlaces(db), await readSizes(db)];
  const buckets = places.map(({ bucket, shardId, worker }) => ({
    bucket,
    shardId,
    worker,
    bytes: sizes?.get(shardId) ?? null,
  }));
  return { kind: 'citus', ...server, buckets };
}

/**
 * Reads the size of each bucket by its shard of `buckets`. Undefined while a worker is down: all are asked.
 */
async function readSizes(db: Queries): Promise<Map<string, number> | undefined> {
  const rows = await db
    .query<{ shardId: string; bytes: number }>(sql`
select a.shardid::text as "shardId", sum(s.size)::float8 as bytes
from pg_dist_shard a
join pg_dist_shard o on o.shardminvalue = a.shardminvalue
join pg_dist_partition t on t.logicalrelid = o.logicalrelid and t.partmethod = 'h'
join citus_shard_sizes() s on s.shard_id::bigint = o.shardid
where a.logicalrelid = 'buckets'::regclass group by a.shardid`)
    .catch(() => undefined);
  return rows && new Map(rows.map(({ shardId, bytes }) => [shardId, bytes]));
}

/**
 * Lists what makes a server acknowledge commits before they are on the disk: fsync, full_page_writes or
 * synchronous_commit, if it is off for the server, this account or this database.
 */
export async function listUndurable(db: Queries): Promise<string[]> {
  const off = await db.query<{ name: string }>(sql`
select name from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name`);
  return off.map(({ name }) => name);
}

/** Refuses a server that acknowledges commits before they are on the disk. @throws StartError */
export async function checkDurability(db: Queries): Promise<void> {
  const off = await listUndurable(db);
  if (off.length === 0) return;
  throw new StartError(
    `the database has ${off.join(' and ')} = off, so a crash loses payments that were acknowledged: set it to on`,
  );
}

/** The record of the last backup in the data folder, for `scrip doctor` and the metrics. */

type LastBackup = { readonly endedAt: string; readonly path: string; readonly bytes: number };

const NAME = 'last-backup.json';

export async function noteBackup(dataDir: string, backup: LastBackup): Promise<void> {
  const file = join(dataDir, NAME);
  await writeFile(`${file}.new`, `${JSON.stringify(backup)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Reads the record. @returns undefined if no backup was made from this folder */
export async function readLastBackup(dataDir: string): Promise<LastBackup | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, NAME), 'utf8')) as LastBackup;
  } catch {
    return undefined;
  }
}
