import { openOwner } from '../../src/db/pool.ts';
import { type Sql, sql } from '../../src/db/sql.ts';
import type { Scope } from './scope.ts';
import { until } from './until.ts';

/** The owner of a database, who may do what the role of the service may not. */

/** Runs a statement on a connection of its own. */
export async function asOwner<Row>(url: string, statement: Sql | string) {
  const owner = await openOwner(url);
  const query = typeof statement === 'string' ? { text: statement, values: [] } : statement;
  return owner.query<Row>(query).finally(() => owner.close());
}

/** Drops a database of a server. On Citus, a transaction that was cut off may still be prepared in it. */
export async function dropDatabase(server: string, name: string): Promise<void> {
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  const drop = async () => {
    const prepared = await asOwner<{ gid: string }>(
      server,
      sql`select gid from pg_prepared_xacts where database = ${name}`,
    );
    for (const { gid } of prepared) await asOwner(url, `rollback prepared '${gid}'`);
    await asOwner(server, `drop database if exists ${name} with (force)`);
  };
  // A daemon of Citus may connect between the end of all sessions and the drop.
  await drop().catch(drop);
}

/** Opens a connection, which ends with the test. */
export async function ownerOf(t: Scope, url: string) {
  const owner = await openOwner(url);
  t.after(() => owner.close());
  return owner;
}

/**
 * Waits until connections wait for a lock. Statistics do not change within a transaction, so a connection of
 * its own reads them.
 * @param isOver ends the wait
 */
export async function waitForLocks(url: string, count: number, isOver = () => false): Promise<void> {
  const watcher = await openOwner(url);
  const waiting = sql`
select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await until(
    `${count} wait for a lock`,
    async () => isOver() || (await watcher.query(waiting)).length >= count,
  ).finally(() => watcher.close());
}
