import { readFile } from 'node:fs/promises';
import { print } from './figures.ts';
import { dropIndexes, fillChunks, makeRows, restoreIndexes } from './fill.ts';
import type { Stage } from './stage.ts';

/** Fills a database with a year of a large business (desk.sql, desk.people.sql). */

const CHUNK = 50_000;
const MERCHANTS = 2_000;
/** Vouchers of each batch. */
const BATCH = 1_000;
const PEOPLE = [
  'fill_declines(1000000)',
  'fill_audit(500000)',
  'fill_settlements()',
  'fill_bank()',
  'fill_work(10000)',
  'fill_slices()',
  `fill_year(current_date, 360, ${MERCHANTS / 10})`,
];

/** The records of people, and the books of the year. */
async function fillPeople({ owner }: Stage): Promise<void> {
  await owner.query(await readFile(new URL('./desk.people.sql', import.meta.url), 'utf8'));
  await owner.query(await readFile(new URL('./books.sql', import.meta.url), 'utf8'));
  for (const call of PEOPLE) {
    await owner.query(`select bench.${call}`);
    print(call);
  }
}

async function prepare(stage: Stage, vouchers: number): Promise<void> {
  const { owner } = stage;
  await owner.query(await readFile(new URL('./desk.sql', import.meta.url), 'utf8'));
  await owner.query('select bench.fill_desk_merchants($1)', [MERCHANTS]);
  await owner.query('select bench.fill_desk_batches($1, $2)', [vouchers / BATCH, vouchers]);
  await dropIndexes(stage);
  await owner.query('create table bench.chunks (first integer primary key)');
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
  await fillChunks(
    stage,
    rows.map(({ n }) => n as number),
    async (client, first) => {
      const made = await makeRows(stage, client, first, Math.min(CHUNK, vouchers - first));
      await client.query('select bench.fill_desk($1, $2, $3, $4, $5, $6)', [first, vouchers, ...made]);
      await client.query('insert into bench.chunks values ($1)', [first]);
      print(`${first} vouchers`);
    },
  );
  await restoreIndexes(stage);
  await fillPeople(stage);
  await owner.query('vacuum analyze');
  await owner.query('create table bench.filled as select now() as at');
}
