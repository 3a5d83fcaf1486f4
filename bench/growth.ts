import { join } from 'node:path';
import { DAY_MS } from '../src/time.ts';
import { middle, print } from './figures.ts';
import { codeOf, draw, dropIndexes, fillChunks, makeRows, restoreIndexes } from './fill.ts';
import { measure } from './measure.ts';
import type { Stock } from './requests.ts';
import { type Serve, Stage } from './stage.ts';
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
const A_YEAR_AGO = new Date(Date.now() - 365 * DAY_MS);

type Operation = (typeof OPERATIONS)[number];
type Figure = { readonly perSecond: number; readonly ratio: number };

export type GrowthResult = readonly {
  readonly vouchers: number;
  readonly journalRows: number;
  readonly databaseMb: number;
  /** Bytes of indexes for each voucher and each journal row. */
  readonly indexBytes: { readonly vouchers: number; readonly journal: number };
  readonly figures: readonly (Figure & { readonly operation: string })[];
}[];

/** A number of vouchers with `entries` journal rows each. */
export type Size = { readonly vouchers: number; readonly entries: number };

/** A database with a number of vouchers, and a service on it. */
type Site = {
  readonly size: Size;
  readonly stage: Stage;
  readonly serve: Serve;
  readonly drawn: Stock;
  readonly figures: readonly { readonly operation: Operation; readonly all: Figure[] }[];
};

/**
 * Measures the operations at each number of vouchers. Each number has a database of its own, and they take
 * turns, so that what else the machine does disturbs them equally.
 * @param keep a folder in which the databases stay, and are found by the next run
 */
export async function measureGrowth(
  sizes: readonly Size[],
  { seconds, turns, keep }: { seconds: number; turns: number; keep?: string | undefined },
): Promise<GrowthResult> {
  const sites: Site[] = [];
  for (const size of sizes) sites.push(await openSite(size, keep));
  for (let turn = 0; turn <= turns; turn++)
    for (const site of sites) await measureTurn(site, seconds, turn > 0);
  const results: GrowthResult[number][] = [];
  for (const { size, stage, serve, figures } of sites) {
    await serve.stop();
    const found = figures.map(({ operation, all }) => ({ operation, ...middle(all) }));
    const facts = await measureSize(stage);
    results.push({ vouchers: size.vouchers, ...facts, figures: found });
    const texts = found.map(
      (each) => `${each.operation} ${Math.round(each.perSecond)}/s (${each.ratio.toFixed(2)})`,
    );
    print(
      `${size.vouchers} vouchers, ${facts.journalRows} journal rows, ${facts.databaseMb} MB: ${texts.join(', ')}`,
    );
  }
  return results;
}

async function openSite(size: Size, keep: string | undefined): Promise<Site> {
  const stage = await Stage.open(keep && join(keep, String(size.vouchers)));
  const last = stage.context.service.keys.codeKey(codeOf(size.vouchers - 1));
  const { rowCount } = await stage.owner.query('select from vouchers where code_key = $1', [last]);
  if (rowCount === 0) await fill(stage, 0, size.vouchers, size.entries);
  const serve = await stage.serve();
  // Codes drawn now differ from those filled in, which would have met some of them.
  const stock = await stage.stock(0, 0);
  const drawn = { ...stock, vouchers: draw(size.vouchers, DRAWN), quiet: draw(size.vouchers, DRAWN) };
  const figures = OPERATIONS.map((operation) => ({ operation, all: [] }));
  return { size, stage, serve, drawn, figures };
}

async function measureTurn(
  { stage, serve, drawn, figures }: Site,
  seconds: number,
  counts: boolean,
): Promise<void> {
  const calls = await yardstick(stage, 'function', 2);
  for (const { operation, all } of figures) {
    const run = await measure(stage, serve, drawn, operation, { connections: CONNECTIONS, seconds });
    if (run.failed > 0) throw new Error(`${operation}: ${run.failed} requests failed`);
    if (counts) all.push({ perSecond: run.perSecond, ratio: run.perSecond / calls });
  }
}

type Filling = {
  /** The journal rows are spread over the time from it to now. */
  readonly since?: Date;
  /** Fills more, while there are no indexes. */
  readonly more?: () => Promise<void>;
};

/** Makes the vouchers from one number to another, exclusive, in a batch of their own. */
export async function fill(
  stage: Stage,
  from: number,
  to: number,
  entries: number,
  { since = A_YEAR_AGO, more = async () => {} }: Filling = {},
): Promise<void> {
  await stage.order(1, 100_000);
  await dropIndexes(stage);
  const count = Math.ceil((to - from) / CHUNK);
  const chunks = Array.from({ length: count }, (_, index) => from + index * CHUNK);
  await fillChunks(stage, chunks, async (client, first) => {
    const rows = await makeRows(stage, client, first, Math.min(CHUNK, to - first));
    const all = [first, entries, stage.merchantId, ...rows, since];
    await client.query('select bench.fill($1, $2, $3, $4, $5, $6, $7, $8)', all);
  });
  await more();
  await restoreIndexes(stage);
}

async function measureSize(stage: Stage) {
  const { rows } = await stage.owner.query(`
select (select count(*) from journal)::int as "journalRows", (select count(*) from vouchers)::int as vouchers,
  (pg_database_size(current_database()) / 1024 / 1024)::int as "databaseMb",
  pg_indexes_size('vouchers')::float as "voucherIndexes",
  (select sum(pg_indexes_size(relid)) from pg_partition_tree('journal'))::float as "journalIndexes"`);
  const { journalRows, vouchers, databaseMb, voucherIndexes, journalIndexes } = rows[0];
  const indexBytes = {
    vouchers: Math.round(voucherIndexes / vouchers),
    journal: Math.round(journalIndexes / journalRows),
  };
  return { journalRows, databaseMb, indexBytes };
}
