import { setTimeout as sleep } from 'node:timers/promises';
import { isDistributed } from './distribute.ts';
import { hasBucketMoved, isUnavailable, sqlState } from './errors.ts';
import { hostAddresses } from './health.ts';
import { type Database, openDatabase, type Queries } from './pool.ts';
import { type HotStatement, sql } from './sql.ts';

/**
 * The workers of a Citus cluster. Calls of the hot path go directly to the worker of their bucket, through a
 * pool for each worker, to the functions that name the shards of the bucket (sql/citus/functions.sql). A
 * worker that is down fails only the calls of its buckets. All other statements go to the coordinator.
 *
 * The functions refuse a call for a bucket that has moved to another worker. The call is then sent there.
 */

/** How long the list of places is valid. Shards are moved by hand, rarely. */
const PLACES_MS = 2_000;
/** How often the place of a moved bucket is read again: a worker learns of a move a moment after another. */
const LOOKS_MAX = 10;
const LOOK_MS = 20;

type DatabaseOptions = Parameters<typeof openDatabase>[2];

/** The shard of a bucket, and the worker that has it. */
export type Place = {
  readonly bucket: number;
  /** The shard of the table `buckets`, as `citus_move_shard_placement` expects it. */
  readonly shardId: string;
  /** The host and port. */
  readonly worker: string;
  readonly host: string;
  readonly port: number;
  /** The id of the placement. It changes with each move. */
  readonly placement: bigint;
};

/** Lists the buckets by their workers. */
export function listPlaces(db: Queries): Promise<Place[]> {
  return db.query<Place>(sql`
select b.bucket, p.shardid::text as "shardId", n.nodename || ':' || n.nodeport as worker, n.nodename as host,
  n.nodeport as port, p.placementid as placement
from bucket_positions b
join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('buckets', b.bucket)
join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
order by worker, b.bucket`);
}

/** A bucket moved while it was read, or between two workers. A repeated read is complete (`retrying`). */
class BucketMoved extends Error {
  readonly code = '40001';
}

/**
 * Finds out whether a database is distributed.
 * @param db the only server, or the coordinator
 * @param options of the connections to the workers: those of `db`
 * @returns the same database, with its workers if there are any; closing it closes them
 */
export async function withWorkers(db: Database, name?: string, options?: DatabaseOptions): Promise<Database> {
  if (!(await isDistributed(db))) return db;
  const workers = new Workers(db, name, options);
  await workers.refresh();
  return {
    ...db,
    async hot(statement, values, bucket) {
      if (bucket === undefined) return db.hot(statement, values);
      for (let looks = 0; ; looks++) {
        try {
          return await workers.of(bucket).hot(namingShards(statement, bucket), values);
        } catch (error) {
          if (isUnavailable(error)) workers.expire();
          if (!isOfOldPlace(error) || looks === LOOKS_MAX) throw error;
        }
        await sleep(LOOK_MS * looks);
        await workers.refresh();
      }
    },
    async transaction(run, isolation) {
      if (isolation !== 'repeatable read') return db.transaction(run, isolation);
      // A worker's snapshot is older than the rows that a move has brought there, so the bucket would seem
      // empty.
      const before = await workers.placements();
      const result = await db.transaction(run, isolation);
      if ((await workers.placements()) === before) return result;
      throw new BucketMoved('a bucket has moved to another worker meanwhile');
    },
    isBusy: () => db.isBusy() || workers.all().some((worker) => worker.isBusy()),
    async close() {
      await Promise.all([...workers.all().map((worker) => worker.close()), db.close()]);
    },
  };
}

/**
 * Whether nothing was done since the bucket is on another worker, or its tables there were dropped meanwhile.
 */
function isOfOldPlace(error: unknown): boolean {
  return hasBucketMoved(error) || sqlState(error) === '42P01';
}

/** Returns the statement that calls the bucket's copy of a function, whose first parameter is the bucket. */
function namingShards({ name, text, ...rest }: HotStatement, bucket: number): HotStatement {
  const own = text.replace(/\b\w+\(\$1,/, `scrip_bucket_${bucket}.$&`);
  return { ...rest, name: `${name}-${bucket}`, text: own };
}

class Workers {
  readonly #coordinator: Database;
  readonly #name: string | undefined;
  readonly #options: DatabaseOptions;
  /** The workers by host and port. A worker without buckets is kept, since buckets may move back. */
  readonly #open = new Map<string, Database>();
  #byBucket = new Map<number, Database>();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(coordinator: Database, name: string | undefined, options: DatabaseOptions) {
    this.#coordinator = coordinator;
    this.#name = name;
    this.#options = options;
  }

  all(): Database[] {
    return [...this.#open.values()];
  }

  /**
   * Returns the known worker of a bucket. Its functions cannot run on the coordinator: only the copies for a
   * bucket keep its shards in their place until the transaction ends.
   * @throws BucketMoved if none was listed: the database is not available, and the places are read again
   */
  of(bucket: number): Database {
    // While the coordinator is away, the last known places are used.
    if (performance.now() - this.#readAt > PLACES_MS && !this.#reading) void this.refresh().catch(() => {});
    const worker = this.#byBucket.get(bucket);
    if (!worker) throw new BucketMoved(`no worker is known for bucket ${bucket}`);
    return worker;
  }

  async placements(): Promise<string> {
    const places = await listPlaces(this.#coordinator);
    return places.map(({ placement }) => placement).join();
  }

  /** Makes the next call read the places again, since they may have changed. */
  expire(): void {
    this.#readAt = Math.min(this.#readAt, performance.now() - PLACES_MS);
  }

  /** Reads the places, once for all who wait. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<void> {
    try {
      const places = await listPlaces(this.#coordinator);
      this.#byBucket = new Map(places.map((place) => [place.bucket, this.#at(place)]));
    } finally {
      this.#readAt = performance.now();
    }
  }

  #at({ worker: key, host, port }: Place): Database {
    let worker = this.#open.get(key);
    if (!worker) {
      const address = new URL(hostAddresses(this.#coordinator.url)[0] as string);
      address.hostname = host;
      address.port = String(port);
      worker = openDatabase(address.href, this.#name, this.#options);
      this.#open.set(key, worker);
    }
    return worker;
  }
}
