import { isLockTimeout } from './errors.ts';
import type { Queries } from './pool.ts';
import { sql } from './sql.ts';

/**
 * Creates the missing monthly partitions, from the month of a time to the last one as seen today
 * (sql/004-partitions.sql). Each is a statement of its own: a table that a long reader holds delays neither
 * the other tables nor the tills.
 * @returns the number of partitions that were created
 * @throws the first lock timeout (55P03), after the others were tried
 */
export async function createPartitions(db: Queries, first: Date, today: Date): Promise<number> {
  const missing = await db.query<{ parent: string; month: string }>(sql`
select parent, month::text as month from missing_partitions(${first}, ${today})`);
  let created = 0;
  let delayed: unknown;
  for (const { parent, month } of missing)
    try {
      const [row] = await db.query<{ created: boolean }>(
        sql`select create_partition(${parent}, ${month}::date) as created`,
      );
      if (row?.created) created++;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      delayed ??= error;
    }
  if (delayed !== undefined) throw delayed;
  return created;
}
