import { readFile } from 'node:fs/promises';
import { SLOTS } from './buckets.ts';
import { StartError } from './errors.ts';
import { hostsOf } from './health.ts';
import { finds, openOwner, type Queries } from './pool.ts';
import { requireStopped } from './session.ts';
import { raw, sql } from './sql.ts';

const ROLES = new URL('../../sql/citus/roles.sql', import.meta.url);
const TABLES = new URL('../../sql/citus/distribute.sql', import.meta.url);
const FUNCTIONS = new URL('../../sql/citus/functions.sql', import.meta.url);

/**
 * Calls are batched bucket by bucket, and a small call costs nearly as much as a large one. So few buckets
 * are cheap (docs/how-to/citus.md, "Capacity"); two for each worker leave room for twice as many workers.
 */
const BUCKETS_OF_WORKER = 2;
const BUCKETS_MIN = 2;

export type Distribution = { readonly buckets: number; readonly workers: number; readonly isNew: boolean };

/**
 * Distributes the migrated schema and its rows over the workers of a Citus cluster. It runs in one
 * transaction, so an interruption leaves nothing half done.
 * @param url of a superuser, on the coordinator
 * @param wanted the number of buckets, 2 to 64; by default two for each worker, or the existing number
 * @throws StartError, one line: no Citus, no workers, a worker that is down, or running processes of Scrip
 */
export async function distribute(url: string, wanted?: number): Promise<Distribution> {
  const found = await asOwner(url, async (owner) => {
    const workers = await checkCluster(owner, url);
    const existing = await findDistribution(owner, workers, wanted);
    if (existing) {
      // A worker that was added since has neither.
      await run(owner, ROLES, FUNCTIONS);
      return { workers, existing };
    }
    const buckets = wanted ?? BUCKETS_OF_WORKER * workers;
    if (!(Number.isInteger(buckets) && buckets >= BUCKETS_MIN && buckets <= SLOTS && buckets >= workers))
      throw new StartError(
        `--buckets must be a whole number from ${Math.max(BUCKETS_MIN, workers)} (there are ${workers} workers) to ${SLOTS}`,
      );
    await checkQuiet(owner);
    await run(owner, ROLES);
    return { workers, buckets };
  });
  if (found.existing) return found.existing;
  // A new connection: the connections that Citus opens for it have the current settings of the roles and the
  // database.
  return asOwner(url, async (owner) => {
    const { workers, buckets } = found;
    const existing = await findDistribution(owner, workers, wanted);
    if (existing) return existing;
    await owner.query(sql`select set_config('scrip.bucket_count', ${String(buckets)}, false)`);
    await run(owner, TABLES, FUNCTIONS);
    return { buckets, workers, isNew: true };
  });
}

/** Runs work on a separate connection, one process at a time. Migrations take the same lock. */
async function asOwner<T>(url: string, work: (owner: Queries) => Promise<T>): Promise<T> {
  const owner = await openOwner(url);
  try {
    await owner.query(sql`select pg_advisory_lock(7311990001)`);
    return await work(owner);
  } finally {
    await owner.close();
  }
}

async function findDistribution(
  owner: Queries,
  workers: number,
  wanted: number | undefined,
): Promise<Distribution | undefined> {
  if (!(await isDistributed(owner))) return undefined;
  const [row] = await owner.query<{ count: number }>(
    sql`select count(*)::int as count from scrip.bucket_positions`,
  );
  const buckets = row?.count ?? 0;
  if (wanted !== undefined && wanted !== buckets)
    throw new StartError(
      `the database is distributed into ${buckets} buckets, and their number cannot be changed`,
    );
  return { buckets, workers, isNew: false };
}

/** Whether the vouchers are distributed over shards. */
export async function isDistributed(db: Queries): Promise<boolean> {
  if (!(await hasCitus(db))) return false;
  return finds(db, sql`select from pg_dist_partition where logicalrelid = to_regclass('scrip.vouchers')`);
}

/**
 * Checks that the vouchers are on one server, so that a standby can answer lists. A standby of a coordinator
 * gives wrong answers: it leaves a statement on shards and on its own tables without rows.
 * @throws StartError, one line
 */
export async function requireOneServer(db: Queries): Promise<void> {
  if (await isDistributed(db))
    throw new StartError(
      'SCRIP_READ_DATABASE_URL must be unset on Citus: a standby of the coordinator gives wrong answers',
    );
}

const hasCitus = (db: Queries) => finds(db, sql`select from pg_extension where extname = 'citus'`);

/** Checks the cluster. @returns the number of workers */
async function checkCluster(owner: Queries, url: string): Promise<number> {
  const host = hostsOf(url);
  if (!(await hasCitus(owner))) {
    const isInstalled = await finds(owner, sql`select from pg_available_extensions where name = 'citus'`);
    throw new StartError(
      isInstalled
        ? `this database does not have Citus: \`create extension citus\` in it, at ${host} and on every worker`
        : `the server at ${host} has no Citus: --distribute needs the coordinator of a Citus cluster (docs/how-to/citus.md)`,
    );
  }
  const [node] = await owner.query<{
    super: boolean;
    coordinator: boolean;
    known: boolean;
    workers: number;
  }>(sql`
select (select rolsuper from pg_roles where rolname = current_user) as super,
  (select groupid = 0 from pg_dist_local_group) as coordinator,
  exists (select from pg_dist_node where groupid = 0) as known,
  (
    select count(*)::int from pg_dist_node
    where groupid <> 0 and noderole = 'primary' and isactive
  ) as workers`);
  if (!node?.super) throw new StartError('--distribute creates roles on the workers: run it as a superuser');
  if (!node.coordinator)
    throw new StartError(`the server at ${host} is a worker: run --distribute on the coordinator`);
  if (node.workers === 0)
    throw new StartError(
      `the coordinator at ${host} has no workers: \`select citus_add_node('HOST', PORT)\` for each of them`,
    );
  if (!node.known)
    throw new StartError(
      `the workers do not know the coordinator: \`select citus_set_coordinator_host('HOST', PORT)\` at ${host}`,
    );
  await checkNodes(owner);
  return node.workers;
}

type NodeRow = { node: string; ok: boolean; result: string };

/** Checks that every node answers, and can take part in a transaction of several nodes. */
async function checkNodes(owner: Queries): Promise<void> {
  const rows = await owner.query<NodeRow>(sql`
select n.nodename || ':' || n.nodeport as node, r.success as ok, r.result
from run_command_on_all_nodes('show max_prepared_transactions') r join pg_dist_node n using (nodeid)
order by n.nodeid`);
  const away = rows.find(({ ok }) => !ok);
  if (away) throw new StartError(`the node ${away.node} does not answer: ${firstLine(away.result)}`);
  const without = rows.find(({ result }) => Number(result) === 0);
  if (without)
    throw new StartError(
      `max_prepared_transactions is 0 at ${without.node}: set it to at least max_connections`,
    );
}

/** Checks that no process uses the tables: afterwards, its knowledge of them would be out of date. */
async function checkQuiet(owner: Queries): Promise<void> {
  await requireStopped(owner);
  if (
    await finds(
      owner,
      sql`select from scrip.keyring_keys where superseded_at is not null and retired_at is null`,
    )
  )
    throw new StartError('the key ring is being rotated: finish it first (`scrip keyring rotate`)');
  if (await finds(owner, sql`select from scrip.daily_limits`))
    throw new StartError('there are no daily limits on Citus: remove them first (`scrip daily-limit list`)');
  if (await finds(owner, sql`select from scrip.products where outstanding_max_minor is not null`))
    throw new StartError(
      'on Citus no limit bounds what vouchers hold: remove it first (`scrip product set --outstanding-max none`)',
    );
}

/**
 * Adapts the functions of a distributed database, which migrations have replaced. Runs in the transaction of
 * the migrations.
 */
export async function adaptFunctions(owner: Queries): Promise<void> {
  await owner.query(raw(await readFile(FUNCTIONS, 'utf8')));
}

/** Runs files in one transaction. */
async function run(owner: Queries, ...files: readonly URL[]): Promise<void> {
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  try {
    await owner.query(raw('begin'));
    for (const text of texts) await owner.query(raw(text));
    await owner.query(raw('commit'));
  } catch (error) {
    await owner.query(raw('rollback')).catch(() => {});
    const { message, code } = error as { message: string; code?: string };
    if (code === undefined) throw error;
    throw new StartError(
      `nothing was distributed, since the cluster failed (${firstLine(message)}): see the coordinator's log, and run it again`,
    );
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}
