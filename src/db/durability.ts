import { StartError } from './errors.ts';
import type { Queries } from './pool.ts';
import { sql } from './sql.ts';

const OFF = sql`
select name from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name`;

/**
 * Refuses a server that acknowledges a commit before it is on a disk.
 * @throws StartError where fsync, full_page_writes or synchronous_commit is off, by the server or for this
 *   account or database
 */
export async function checkDurability(db: Queries): Promise<void> {
  const off = (await db.query<{ name: string }>(OFF)).map(({ name }) => name);
  if (off.length === 0) return;
  throw new StartError(
    `the database has ${off.join(' and ')} = off, so a crash loses payments that were acknowledged: set it to on`,
  );
}
