import { isDistributed } from './distribute.ts';
import { finds, openOwner, type Queries } from './pool.ts';
import { raw, sql } from './sql.ts';

/**
 * The clock of the books (database_time in sql/005-rules.sql) is that of the server. Here it is moved: to
 * fixed times for a demo, which shows months in seconds, and for tests; ahead of the server's clock for a
 * sandbox. It requires the rights of the schema's owner, and is only for databases without real money.
 */
export type MovedClock = {
  /** Sets the clock for all processes. */
  set(time: Date): Promise<void>;
  /** Returns to the clock of the server. */
  close(): Promise<void>;
};

const MOVED = `
create table if not exists scrip.moved_clock (
  only_row boolean primary key default true, at timestamptz, ahead interval);
grant select on scrip.moved_clock to scrip_service;
create or replace function scrip.database_time() returns timestamptz language sql volatile as $$
  select coalesce((select coalesce(at, clock_timestamp() + ahead) from scrip.moved_clock), clock_timestamp())
$$`;

const RESTORED = `
create or replace function scrip.database_time() returns timestamptz language sql volatile as $$
  select clock_timestamp()
$$;
drop table if exists scrip.moved_clock`;

const isMoved = (db: Queries) => finds(db, sql`select where to_regclass('scrip.moved_clock') is not null`);

/**
 * Returns to the clock of the server after a demo was killed before it could. An account without the right to
 * do so changes nothing.
 * @param url of the schema's owner
 * @returns whether the clock was moved
 */
export async function restoreClock(url: string): Promise<boolean> {
  const owner = await openOwner(url);
  try {
    const wasMoved = await isMoved(owner);
    if (wasMoved) await owner.query(raw(RESTORED));
    return wasMoved;
  } finally {
    await owner.close();
  }
}

/** Makes the clock of a database movable. @param url of the schema's owner */
export async function moveClock(url: string): Promise<MovedClock> {
  const owner = await openOwner(url);
  await owner.query(raw(MOVED));
  if (await isDistributed(owner)) await owner.query(sql`select create_reference_table('scrip.moved_clock')`);
  // For this connection only. If a commit is lost, the clock is that of the server, which is harmless.
  await owner.query(sql`set synchronous_commit = off`);
  return {
    async set(time) {
      await owner.query(
        sql`
          insert into scrip.moved_clock (at) values (${time})
          on conflict (only_row) do update set at = excluded.at`,
      );
    },
    async close() {
      await owner.query(sql`set synchronous_commit = on`);
      await owner.query(raw(RESTORED));
      await owner.close();
    },
  };
}

/** The clock of a process, which follows that of the database. */
export type ServiceClock = {
  now(): Date;
  /**
   * Advances the clock of a sandbox.
   * @param url of the schema's owner
   * @param duration in the form of ISO 8601, such as PT16M or P1M
   */
  advance(url: string, duration: string): Promise<void>;
};

/** Returns the clock of this machine, or one as far ahead of it as the clock of the sandbox is. */
export async function openClock(db: Queries): Promise<ServiceClock> {
  let aheadMs = await readAheadMs(db);
  return {
    now: () => new Date(Date.now() + aheadMs),
    async advance(url, duration) {
      const owner = await openOwner(url);
      try {
        await owner.query(raw(MOVED));
        await owner.query(sql`
insert into scrip.moved_clock as m (ahead) values (${duration}::interval)
on conflict (only_row) do update
set ahead = make_interval(secs => extract(epoch from now() + m.ahead + excluded.ahead - now())::float8)`);
        aheadMs = await readAheadMs(owner);
      } finally {
        await owner.close();
      }
    },
  };
}

async function readAheadMs(db: Queries): Promise<number> {
  if (!(await isMoved(db))) return 0;
  const [row] = await db.query<{ aheadMs: number | null }>(
    sql`select (extract(epoch from ahead) * 1000)::float8 as "aheadMs" from scrip.moved_clock`,
  );
  return row?.aheadMs ?? 0;
}
