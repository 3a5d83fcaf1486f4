import { isDistributed } from './distribute.ts';
import { openOwner } from './pool.ts';
import { sql } from './sql.ts';

/**
 * The clock by which the books go (database_time in sql/005-rules.sql), moved: for a demo, which shows
 * months in seconds, and for tests. It takes the rights of the schema's owner, and is for databases that
 * hold no money.
 */
export type MovedClock = {
  /** Sets it, for all processes. */
  set(time: Date): Promise<void>;
  /** Lets it run again as the server's own. */
  close(): Promise<void>;
};

const MOVED = `
create table if not exists scrip.moved_clock (only_row boolean primary key default true,
  at timestamptz not null);
grant select on scrip.moved_clock to scrip_service;
create or replace function scrip.database_time() returns timestamptz language sql volatile as $$
  select coalesce((select at from scrip.moved_clock), clock_timestamp())
$$`;

const RESTORED = `
create or replace function scrip.database_time() returns timestamptz language sql volatile as $$
  select clock_timestamp()
$$;
drop table if exists scrip.moved_clock`;

/**
 * Lets the clock run again where a demo was killed before it could. An account that may not do so leaves
 * it alone.
 * @param url of the schema's owner
 * @returns whether it was moved
 */
export async function restoreClock(url: string): Promise<boolean> {
  const owner = await openOwner(url);
  try {
    const [found] = await owner.query<{ moved: boolean }>(
      sql`select to_regclass('scrip.moved_clock') is not null as moved`,
    );
    if (found?.moved) await owner.query({ text: RESTORED, values: [] });
    return found?.moved ?? false;
  } finally {
    await owner.close();
  }
}

/** @param url of the schema's owner */
export async function moveClock(url: string): Promise<MovedClock> {
  const owner = await openOwner(url);
  await owner.query({ text: MOVED, values: [] });
  if (await isDistributed(owner)) await owner.query(sql`select create_reference_table('scrip.moved_clock')`);
  // Of this connection only: a clock that is lost runs again as the server's own.
  await owner.query(sql`set synchronous_commit = off`);
  return {
    async set(time) {
      await owner.query(
        sql`
          insert into scrip.moved_clock (at) values (${time}) on conflict (only_row) do update
          set at = excluded.at`,
      );
    },
    async close() {
      await owner.query(sql`set synchronous_commit = on`);
      await owner.query({ text: RESTORED, values: [] });
      await owner.close();
    },
  };
}
