import { hkdfSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { measure, median } from './measure.ts';
import type { Stock, Voucher } from './requests.ts';
import type { Stage } from './stage.ts';
import { yardstick } from './yardstick.ts';

/**
 * The same load on more and more vouchers and journal rows. SQL makes these rows; only the load is
 * measured.
 */

const OPERATIONS = ['redeem', 'balance', 'lookup'] as const;
const CONNECTIONS = 64;
/** Vouchers that the load draws from. */
const DRAWN = 20_000;
const CHUNK = 100_000;
export const PIN = '0731';

export type GrowthResult = readonly {
  readonly vouchers: number;
  readonly journalRows: number;
  readonly databaseMb: number;
  /** Bytes of indexes for each voucher and each journal row. */
  readonly indexBytes: { readonly vouchers: number; readonly journal: number };
  readonly figures: readonly {
    readonly operation: string;
    readonly perSecond: number;
    readonly ratio: number;
  }[];
}[];

const print = (line: string) => process.stdout.write(`${line}\n`);

/** A number of vouchers. Those added since the size before have `entries` journal rows each. */
export type Size = { readonly vouchers: number; readonly entries: number };

/** Measures the operations at each number of vouchers, in ascending order. */
export async function measureGrowth(
  stage: Stage,
  sizes: readonly Size[],
  seconds: number,
  turns: number,
): Promise<GrowthResult> {
  const serve = await stage.serve();
  try {
    const stock = await stage.stock(0, 0);
    await prepareFill(stage);
    const results: GrowthResult[number][] = [];
    let filled = 0;
    for (const { vouchers: size, entries } of sizes) {
      await fill(stage, filled, size, entries);
      filled = size;
      const drawn: Stock = { ...stock, vouchers: draw(size, DRAWN), quiet: draw(size, DRAWN) };
      const figures = OPERATIONS.map((operation) => ({
        operation,
        perSecond: [] as number[],
        ratio: [] as number[],
      }));
      for (let turn = 0; turn <= turns; turn++) {
        const calls = await yardstick(stage, 'function', 2);
        for (const each of figures) {
          const run = await measure(stage, serve, drawn, each.operation, {
            connections: CONNECTIONS,
            seconds,
          });
          if (turn === 0) continue;
          each.perSecond.push(run.perSecond);
          each.ratio.push(run.perSecond / calls);
        }
      }
      const middle = figures.map(({ operation, perSecond, ratio }) => ({
        operation,
        perSecond: median(perSecond),
        ratio: median(ratio),
      }));
      const facts = await measureSize(stage);
      results.push({ vouchers: size, ...facts, figures: middle });
      const texts = middle.map(
        (each) => `${each.operation} ${Math.round(each.perSecond)}/s (${each.ratio.toFixed(2)})`,
      );
      print(
        `${size} vouchers, ${facts.journalRows} journal rows, ${facts.databaseMb} MB: ${texts.join(', ')}`,
      );
    }
    return results;
  } finally {
    await serve.stop();
  }
}

/**
 * The database derives the keys by which the service looks vouchers up, in the same way as
 * src/keyring/ring.ts.
 */
export async function prepareFill(stage: Stage): Promise<void> {
  const line = (await readFile(join(stage.folder, 'keys'), 'utf8')).trim().split('\n').at(-1) ?? '';
  const master = Buffer.from(line.split(':')[1] ?? '', 'base64url');
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', master, '', `scrip ${purpose}`, 32));
  // As in production, where months are made ahead: else all past rows would be in the default partition.
  await stage.owner.query("select create_partitions(now() - interval '13 months', now())");
  await stage.owner.query('create extension if not exists pgcrypto with schema bench');
  await stage.owner.query(
    'create table bench.fill_keys (lookup bytea, pin bytea, merchant_id int, batch_id int)',
  );
  await stage.owner.query(
    `
      insert into bench.fill_keys select $1, $2, $3, max(id) from batches where merchant_id = $3
      and value_minor is not null`,
    [derive('lookup'), derive('pin'), stage.merchantId],
  );
}

export const codeOf = (number: number) => String(900_000_000_000 + number);

/** Makes the vouchers from one number to another, exclusive. */
export async function fill(stage: Stage, from: number, to: number, entries: number): Promise<void> {
  for (let first = from; first < to; first += CHUNK) {
    await stage.owner.query('select bench.fill($1, $2, $3, $4)', [
      first,
      Math.min(first + CHUNK, to) - 1,
      PIN,
      entries,
    ]);
  }
  await stage.owner.query('vacuum analyze vouchers, journal');
  await stage.owner.query('checkpoint');
}

/** Vouchers spread evenly over the table, in another order than that of the table. */
export function draw(size: number, most: number): Voucher[] {
  const step = Math.max(1, Math.floor(size / most));
  const numbers = Array.from({ length: Math.min(most, size) }, (_, index) => index * step);
  for (let at = numbers.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1));
    [numbers[at], numbers[other]] = [numbers[other] as number, numbers[at] as number];
  }
  return numbers.map((number) => ({ code: codeOf(number), pin: PIN, serial: 0n }));
}

async function measureSize(stage: Stage) {
  const { rows } = await stage.owner.query(`
select (select count(*) from journal)::int as "journalRows", (select count(*) from vouchers)::int as vouchers,
  (pg_database_size(current_database()) / 1024 / 1024)::int as "databaseMb",
  pg_indexes_size('vouchers')::float as "voucherIndexes",
    pg_indexes_size('journal')::float as "journalIndexes"`);
  const { journalRows, vouchers, databaseMb, voucherIndexes, journalIndexes } = rows[0];
  const indexBytes = {
    vouchers: Math.round(voucherIndexes / vouchers),
    journal: Math.round(journalIndexes / journalRows),
  };
  return { journalRows, databaseMb, indexBytes };
}
