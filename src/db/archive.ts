import { isDistributed } from './distribute.ts';
import { isLockTimeout, StartError } from './errors.ts';
import { finds, openOwner } from './pool.ts';
import { raw, sql } from './sql.ts';

/**
 * Old months of the journal on a cheaper disk. Every row stays: the answer to a repeated request, the history
 * of a voucher and the reports read it there.
 */

type Archived = { readonly month: string; readonly rows: number };

/**
 * Moves the months of the journal that ended before a day (UTC) to a tablespace, while the service runs.
 * @param url of the schema's owner
 * @throws StartError if there is no such tablespace, the database is a Citus cluster, or maintenance holds
 *   the partitions
 */
export async function archiveMonths(
  url: string,
  { before, tablespace }: { readonly before: string; readonly tablespace: string },
  onMonth: (month: Archived) => void = () => {},
): Promise<Archived[]> {
  const owner = await openOwner(url);
  try {
    if (await isDistributed(owner))
      throw new StartError('on Citus the journal is on the workers: it cannot be archived by this command');
    if (!(await finds(owner, sql`select from pg_tablespace where spcname = ${tablespace}`)))
      throw new StartError(`there is no tablespace ${tablespace}: create it first (create tablespace …)`);
    // A month in which something may still be booked is left alone.
    const months = await owner.query<{ part: string; month: string }>(sql`
select p.part, translate(o.month, '_', '-') as month
from scrip.book_horizon h
cross join scrip.old_partitions('journal', least(${before}::date at time zone 'UTC', h.at)) o (month)
cross join lateral (select 'journal_' || o.month as part) p
join pg_class c on c.oid = to_regclass('scrip.' || p.part)
left join pg_tablespace t on t.oid = c.reltablespace
where t.spcname is distinct from ${tablespace} order by o.month`);
    const archived: Archived[] = [];
    for (const { part, month } of months) {
      const move = sql`select scrip.move_partition(${part}, ${tablespace}) as rows`;
      const [moved] = await owner.query<{ rows: string }>(move).catch((error: unknown) => {
        if (!isLockTimeout(error)) throw error;
        throw new StartError(`the month ${month} is in use by maintenance and was not moved: run it again`);
      });
      await owner.query(raw(`vacuum (freeze, analyze) scrip.${part}`));
      archived.push({ month, rows: Number(moved?.rows) });
      onMonth(archived.at(-1) as Archived);
    }
    return archived;
  } finally {
    await owner.close();
  }
}
