import { StartError } from './errors.ts';
import type { Queries } from './pool.ts';
import { sql } from './sql.ts';

/** @throws StartError while a process of the service works on the database */
export async function requireStopped(owner: Queries): Promise<void> {
  const [sessions] = await owner.query<{ count: number }>(sql`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name like 'scrip%'
      and application_name not in ('scrip-owner', 'scrip-embedded')`);
  if (sessions && sessions.count > 0)
    throw new StartError(
      `Scrip works on this database (${sessions.count} connections): stop \`scrip serve\` and \`scrip work\` everywhere first`,
    );
}
