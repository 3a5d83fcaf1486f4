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
