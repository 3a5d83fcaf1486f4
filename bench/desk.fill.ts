import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { drawNumbers } from '../src/batches/queries.ts';
import { serialOf } from '../src/db/buckets.ts';
import { bytesArray, plainArray } from '../src/db/sql.ts';
import { codeOf, PIN } from './growth.ts';
import type { Stage } from './stage.ts';

/** Fills a database with a year of a large business (desk.sql, desk.people.sql). */

const CHUNK = 50_000;
const MERCHANTS = 2_000;
/** Vouchers of each batch. */
const BATCH = 1_000;
/** Connections that fill at once. */
const CLIENTS = 3;

/** Durability does not matter until the database is filled. */
const FILLING = ['fsync = off', 'full_page_writes = off', "max_wal_size = '8GB'", 'autovacuum = off'];

const PEOPLE = [
  'fill_declines(1000000)',
  'fill_audit(500000)',
  'fill_settlements()',
  'fill_bank()',
  'fill_work(10000)',
  'fill_slices()',
  `fill_year(current_date, 360, ${MERCHANTS / 10})`,
];

const print = (line: string) => process.stdout.write(`${line}\n`);

/** Consecutive codes, all with the same PIN (growth.ts), sealed as generation seals them. */
async function make(stage: Stage, client: pg.Client, first: number, count: number) {
  const { keys } = stage.context.service;
  const { rows } = await client.query<{ numbers: string[] }>({ ...drawNumbers(count), values: [count] });
  const made = (rows[0]?.numbers ?? []).map((number, index) => {
    const code = codeOf(first + index);
    const serial = serialOf(BigInt(number), keys.slotOf(code));
    return {
      serial,
      codeKey: keys.codeKey(code),
      pinKey: keys.pinKey(code, PIN),
      sealed: keys.seal(serial, code, PIN),
    };
  });
  return {
    serials: plainArray(made.map(({ serial }) => serial)),
    codeKeys: plainArray(made.map(({ codeKey }) => codeKey)),
    pinKeys: plainArray(made.map(({ pinKey }) => pinKey)),
    sealed: bytesArray(made.map(({ sealed }) => sealed)),
  };
}

/** The records of people, and the books of the year. */
async function fillPeople({ owner }: Stage): Promise<void> {
  await owner.query(await readFile(new URL('./desk.people.sql', import.meta.url), 'utf8'));
  await owner.query(await readFile(new URL('./books.sql', import.meta.url), 'utf8'));
  for (const call of PEOPLE) {
    await owner.query(`select bench.${call}`);
    print(call);
  }
}

async function prepare({ owner }: Stage, vouchers: number): Promise<void> {
  await owner.query(await readFile(new URL('./desk.sql', import.meta.url), 'utf8'));
  await owner.query("select create_partitions(now() - interval '13 months', now())");
  await owner.query("select create_decline_partitions(now() - interval '3 months', now())");
  await owner.query('select bench.fill_desk_merchants($1)', [MERCHANTS]);
  await owner.query('select bench.fill_desk_batches($1, $2)', [vouchers / BATCH, vouchers]);
  await owner.query('select bench.drop_indexes()');
  for (const setting of FILLING) await owner.query(`alter system set ${setting}`);
  await owner.query('select pg_reload_conf()');
  await owner.query('create table bench.chunks (first integer primary key)');
}

/** Fills chunks on a connection of its own until none is left. */
async function fillChunks(stage: Stage, left: Iterable<number>, vouchers: number): Promise<void> {
  const client = new pg.Client({ connectionString: stage.embedded.ownerUrl });
  await client.connect();
  try {
    await client.query('set search_path = scrip');
    for (const first of left) {
      const count = Math.min(CHUNK, vouchers - first);
      const { serials, codeKeys, pinKeys, sealed } = await make(stage, client, first, count);
      const all = [first, vouchers, serials, codeKeys, pinKeys, sealed];
      await client.query('begin');
      await client.query('select bench.fill_desk($1, $2, $3, $4, $5, $6)', all);
      await client.query('insert into bench.chunks values ($1)', [first]);
      await client.query('commit');
      print(`${first + count} vouchers`);
    }
  } finally {
    await client.end();
  }
}

/** Fills a database, or resumes where it was interrupted. A filled one is not changed. */
export async function fillDesk(stage: Stage, vouchers: number): Promise<void> {
  const { owner } = stage;
  const exists = async (table: string) =>
    (await owner.query('select to_regclass($1) is not null as exists', [table])).rows[0].exists as boolean;
  if (await exists('bench.filled')) return;
  if (!(await exists('bench.chunks'))) await prepare(stage, vouchers);
  const { rows } = await owner.query(
    `select n from generate_series(0, $1::integer - 1, $2::integer) n
      where n not in (select first from bench.chunks) order by n`,
    [vouchers, CHUNK],
  );
  const left = rows.map(({ n }) => n as number).values();
  await Promise.all(Array.from({ length: CLIENTS }, () => fillChunks(stage, left, vouchers)));
  await owner.query("set maintenance_work_mem = '1GB'");
  const dropped = await owner.query('select place, statement from bench.dropped order by place');
  for (const { place, statement } of dropped.rows) {
    await owner.query(statement.replace(' ON ONLY ', ' ON '));
    await owner.query('delete from bench.dropped where place = $1', [place]);
    print(statement.slice(0, 80));
  }
  await fillPeople(stage);
  await owner.query('alter system reset all');
  await owner.query('select pg_reload_conf()');
  await owner.query('create table bench.filled as select now() as at');
  await owner.query('vacuum analyze');
  await owner.query('checkpoint');
}
