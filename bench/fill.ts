import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { drawNumbers } from '../src/batches/fill.ts';
import { serialOf } from '../src/db/buckets.ts';
import { bytesArray, plainArray } from '../src/db/sql.ts';
import type { Voucher } from './requests.ts';
import { type Stage, shuffle } from './stage.ts';

/** Fills a database with many vouchers (fill.sql), with the same PIN. */

const PIN = '0731';
/** Connections that fill at once. */
const CLIENTS = 3;
/** Durability does not matter until the database is filled. */
const FILLING = ['fsync = off', 'full_page_writes = off', "max_wal_size = '8GB'", 'autovacuum = off'];

/** Codes far from each other, as those of a service, so that hardly any two have the same masked form. */
const SPREAD = 99_991;
const CODES = 10 ** 12;
export const codeOf = (number: number) =>
  String((900_000_000_000 + number * SPREAD) % CODES).padStart(12, '0');

/** The rows of vouchers as array parameters, sealed as generation seals them. */
export async function makeRows(stage: Stage, client: pg.Client, first: number, count: number) {
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
  return [
    plainArray(made.map(({ serial }) => serial)),
    plainArray(made.map(({ codeKey }) => codeKey)),
    plainArray(made.map(({ pinKey }) => pinKey)),
    bytesArray(made.map(({ sealed }) => sealed)),
  ] as const;
}

/** Gives each connection the next chunk until none is left; a chunk is one transaction. */
export async function fillChunks(
  stage: Stage,
  chunks: Iterable<number>,
  fill: (client: pg.Client, first: number) => Promise<void>,
): Promise<void> {
  const left = chunks[Symbol.iterator]();
  const one = async () => {
    const client = new pg.Client({ connectionString: stage.embedded.ownerUrl });
    await client.connect();
    try {
      await client.query('set search_path = scrip');
      for (let next = left.next(); !next.done; next = left.next()) {
        await client.query('begin');
        await fill(client, next.value);
        await client.query('commit');
      }
    } finally {
      await client.end();
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, one));
}

/** Drops the indexes of the large tables until `restoreIndexes`: a fill is many times faster without them. */
export async function dropIndexes({ owner }: Stage): Promise<void> {
  await owner.query(await readFile(new URL('./fill.sql', import.meta.url), 'utf8'));
  await owner.query(
    "select create_partition(parent, month) from missing_partitions(now() - interval '13 months', now())",
  );
  await owner.query('select bench.drop_indexes()');
  for (const setting of FILLING) await owner.query(`alter system set ${setting}`);
  await owner.query('select pg_reload_conf()');
}

export async function restoreIndexes({ owner }: Stage): Promise<void> {
  await owner.query("set maintenance_work_mem = '1GB'");
  const { rows } = await owner.query('select place, statement from bench.dropped order by place');
  for (const { place, statement } of rows) {
    await owner.query(statement.replace(' ON ONLY ', ' ON '));
    await owner.query('delete from bench.dropped where place = $1', [place]);
  }
  await owner.query('alter system reset all');
  await owner.query('select pg_reload_conf()');
  await owner.query('vacuum analyze');
  await owner.query('checkpoint');
}

/** Vouchers spread evenly over the table, in another order than that of the table. */
export function draw(size: number, most: number): Voucher[] {
  const step = Math.max(1, Math.floor(size / most));
  const numbers = Array.from({ length: Math.min(most, size) }, (_, index) => index * step);
  return shuffle(numbers).map((number) => ({ code: codeOf(number), pin: PIN, serial: 0n }));
}
