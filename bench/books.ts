import { readFile } from 'node:fs/promises';
import { findReport, makeReport } from '../src/books/reports/reports.ts';
import { streamTransactions } from '../src/books/reports/transactions.ts';
import { DAY_MS, isoDay } from '../src/time.ts';
import { keepCoreBusy } from './desk.beside.ts';
import { median, print } from './figures.ts';
import { fill } from './growth.ts';
import { type Measured, measure } from './measure.ts';
import type { Stock } from './requests.ts';
import { type Given, numberOf } from './scenario.ts';
import { MAIN, type Serve, Stage, settingsIn } from './stage.ts';
import { type Watched, watchProgram } from './usage.ts';

const DAYS = 364;
/** The vouchers that are generated without tills. */
const FEW = 100;
/** Tills that pause between two payments, and leave the machine idle time. */
const SHAPE = { connections: 32, seconds: 4, pauseMs: 100 };
const STREAMED = 100_000;
/** Windows of the tills alone, before and after the close, and beside one busy core. */
const WINDOWS = 5;

export type Size = {
  readonly rows: number;
  readonly merchants: number;
  /** Vouchers that do not move on the day. */
  readonly vouchers: number;
  /** Without tills. */
  readonly isQuiet: boolean;
};

const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(2);

/** Measures windows of redemptions until `isOver`. */
async function windows(
  stage: Stage,
  serve: Serve,
  stock: Stock,
  isOver: (count: number) => boolean,
): Promise<Measured[]> {
  const all: Measured[] = [];
  while (!isOver(all.length)) all.push(await measure(stage, serve, stock, 'redeem', SHAPE));
  return all;
}

/** Prints the medians of windows, as multiples of those of the tills alone. */
function compare(what: string, all: readonly Measured[], alone: readonly Measured[]): void {
  const of = (name: 'p50Ms' | 'p99Ms') => {
    const [own, other] = [all, alone].map((each) => median(each.map((window) => window[name])));
    return `${own?.toFixed(1)} ms (×${((own ?? 0) / (other ?? 0)).toFixed(2)})`;
  };
  const perSecond = Math.round(median(all.map((each) => each.perSecond)));
  print(`${what}: ${perSecond}/s, p50 ${of('p50Ms')}, p99 ${of('p99Ms')}, ${all.length} windows`);
  print(`  p99 of each: ${all.map(({ p99Ms }) => p99Ms.toFixed(0)).join(' ')}`);
}

/** Runs a command on the database of the stage, in a process of its own. */
export function commandOn(stage: Stage, ...words: readonly string[]): Promise<Watched> {
  return watchProgram(process.execPath, [MAIN, ...words], settingsIn(stage.folder));
}

const close = (stage: Stage) => commandOn(stage, 'books', 'close');
const timeOf = ({ seconds: took, mostMb }: Watched) => `${took.toFixed(2)} s, ${mostMb} MB`;

async function fillDay(stage: Stage, yesterday: number, { vouchers, rows }: Size): Promise<void> {
  const { owner, merchantId } = stage;
  const more = async () => {
    await owner.query(await readFile(new URL('./books.sql', import.meta.url), 'utf8'));
    await owner.query('select bench.fill_day($1, $2, $3)', [new Date(yesterday), rows, merchantId]);
  };
  await fill(stage, 0, vouchers, 2, { more });
  await owner.query('delete from book_days; update books set sealed_until = null');
  await owner.query("insert into book_days (day, starts_at, ends_at, zone) values ($1, $2, $3, 'UTC')", [
    isoDay(yesterday),
    new Date(yesterday),
    new Date(yesterday + DAY_MS),
  ]);
  await owner.query('select bench.open_books($1)', [new Date(yesterday)]);
}

/** Makes an ended day with its rows, and a stock of vouchers. */
export async function prepareDay(stage: Stage, yesterday: number, size: Size): Promise<Stock> {
  const producing = await stage.serve();
  // Random codes of a large stock would collide with those that are filled in.
  const stock = await stage.stock(0, 0, size.isQuiet ? FEW : undefined).finally(() => producing.stop());
  await fillDay(stage, yesterday, size);
  return stock;
}

/** Returns how many rows were read so far from each table. */
async function rowsRead({ owner }: Stage): Promise<Map<string, number>> {
  await owner.query('select pg_stat_clear_snapshot(), pg_sleep(1)');
  const { rows: found } = await owner.query(
    `select relname as name, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as read
     from pg_stat_user_tables`,
  );
  return new Map(found.map(({ name, read }) => [name as string, read as number]));
}

/** Returns how many rows each table was read for each row of the day, the most first. */
function readFor(
  rows: number,
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): string {
  const each = [...after].map(([name, read]) => [name, (read - (before.get(name) ?? 0)) / rows] as const);
  const most = each.filter(([, read]) => read >= 0.1).sort(([, one], [, other]) => other - one);
  const sum = each.reduce((total, [, read]) => total + read, 0);
  return `${sum.toFixed(1)} rows read for each (${most.map(([name, read]) => `${name} ${read.toFixed(1)}`).join(', ')})`;
}

/** The close of yesterday beside tills, tills alone before and after it, and beside one busy core. */
async function measureClose(stage: Stage, yesterday: number, size: Size): Promise<void> {
  const { rows, isQuiet } = size;
  const stock = await prepareDay(stage, yesterday, size);
  if (isQuiet) {
    const before = await rowsRead(stage);
    const took = timeOf(await close(stage));
    const read = readFor(rows, before, await rowsRead(stage));
    print(`close of a day with ${rows} rows, without tills: ${took}, ${read}`);
    return;
  }
  const serve = await stage.serve(['--no-work', '--processes', '1']);
  const run = (isOver: (count: number) => boolean) => windows(stage, serve, stock, isOver);
  const aFew = (count: number) => count === WINDOWS;
  try {
    await run((count) => count === 1);
    const alone = await run(aFew);
    const stop = keepCoreBusy();
    const core = await run(aFew);
    await stop();
    let isOver = false;
    const closing = close(stage).finally(() => {
      isOver = true;
    });
    const beside = await run(() => isOver);
    const took = timeOf(await closing);
    alone.push(...(await run(aFew)));
    print(`close of a day with ${rows} rows beside tills: ${took}`);
    compare('tills alone', alone, alone);
    compare('beside one busy core', core, alone);
    compare('beside the close', beside, alone);
  } finally {
    await serve.stop();
  }
}

async function measureReports(stage: Stage, yesterday: number, { merchants }: Size): Promise<void> {
  const { service } = stage.operator;
  const wanted = { to: isoDay(yesterday + DAY_MS), merchantId: stage.merchantId };
  await stage.owner.query('select bench.fill_year($1, $2, $3)', [isoDay(yesterday), DAYS, merchants]);
  await stage.owner.query('vacuum analyze book_movements, book_balances, book_reversals, book_closings');
  const from = isoDay(yesterday - DAYS * DAY_MS);
  for (const name of ['R1', 'R2', 'R3', 'R7', 'R9']) {
    const kind = findReport(name);
    if (!kind) continue;
    const all = { from, to: wanted.to };
    const since = performance.now();
    await makeReport(service, kind, all);
    print(`${name} of a year, ${merchants} merchants: ${seconds(since)} s`);
  }
  const since = performance.now();
  let count = 0;
  global.gc?.();
  const before = process.memoryUsage().rss;
  for await (const _line of streamTransactions(service, { from: isoDay(yesterday), ...wanted }))
    if (++count === STREAMED) break;
  const grown = Math.round((process.memoryUsage().rss - before) / 1_048_576);
  print(`R8: ${count} transactions in ${seconds(since)} s; memory grew by ${grown} MB`);
}

/** Returns the beginning of yesterday. */
export const findYesterday = () => Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;

/** The close of a large day beside tills, with its memory, and reports of a year. */
export async function run(given: Given): Promise<void> {
  const [rows, merchants, vouchers] = [
    numberOf(given, 'rows'),
    numberOf(given, 'merchants'),
    numberOf(given, 'vouchers'),
  ];
  const size = { rows, merchants, vouchers, isQuiet: given.values['quiet'] === true };
  const yesterday = findYesterday();
  const stage = await Stage.open();
  await measureClose(stage, yesterday, size);
  await measureReports(stage, yesterday, size);
}
