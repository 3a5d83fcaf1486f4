import { middle, print } from './figures.ts';
import { draw, dropIndexes, fillChunks, makeRows, restoreIndexes } from './fill.ts';
import { measure } from './measure.ts';
import type { Stock } from './requests.ts';
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
const CHUNK = 50_000;
const A_YEAR_AGO = new Date(Date.now() - 365 * 86_400_000);

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
  const stock = await stage.stock(0, 0);
  const results: GrowthResult[number][] = [];
  let filled = 0;
  for (const { vouchers: size, entries } of sizes) {
    await fill(stage, filled, size, entries);
    filled = size;
    const drawn: Stock = { ...stock, vouchers: draw(size, DRAWN), quiet: draw(size, DRAWN) };
    const figures = OPERATIONS.map((operation) => ({
      operation,
      all: [] as { perSecond: number; ratio: number }[],
    }));
    for (let turn = 0; turn <= turns; turn++) {
      const calls = await yardstick(stage, 'function', 2);
      for (const each of figures) {
        const run = await measure(stage, serve, drawn, each.operation, {
          connections: CONNECTIONS,
          seconds,
        });
        if (run.failed > 0) throw new Error(`${each.operation}: ${run.failed} requests failed`);
        if (turn === 0) continue;
        each.all.push({ perSecond: run.perSecond, ratio: run.perSecond / calls });
      }
    }
    const found = figures.map(({ operation, all }) => ({ operation, ...middle(all) }));
    const facts = await measureSize(stage);
    results.push({ vouchers: size, ...facts, figures: found });
    const texts = found.map(
      (each) => `${each.operation} ${Math.round(each.perSecond)}/s (${each.ratio.toFixed(2)})`,
    );
    print(`${size} vouchers, ${facts.journalRows} journal rows, ${facts.databaseMb} MB: ${texts.join(', ')}`);
  }
  await serve.stop();
  return results;
}

/**
 * Makes the vouchers from one number to another, exclusive.
 * @param since their journal rows are spread over the time from it to now
 */
export async function fill(
  stage: Stage,
  from: number,
  to: number,
  entries: number,
  since = A_YEAR_AGO,
): Promise<void> {
  await dropIndexes(stage);
  await fillVouchers(stage, from, to, entries, since);
  await restoreIndexes(stage);
}

/** Makes vouchers between `dropIndexes` and `restoreIndexes`. */
export async function fillVouchers(
  stage: Stage,
  from: number,
  to: number,
  entries: number,
  since = A_YEAR_AGO,
): Promise<void> {
  const count = Math.ceil((to - from) / CHUNK);
  const chunks = Array.from({ length: count }, (_, index) => from + index * CHUNK);
  await fillChunks(stage, chunks, async (client, first) => {
    const rows = await makeRows(stage, client, first, Math.min(CHUNK, to - first));
    const all = [first, entries, stage.merchantId, ...rows, since];
    await client.query('select bench.fill($1, $2, $3, $4, $5, $6, $7, $8)', all);
  });
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
