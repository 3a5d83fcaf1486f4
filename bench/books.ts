/**
 * `npm run bench:books`: the close of a large day beside tills, with its memory, and reports of a year.
 *
 *   npm run bench:books -- --rows 2000000 --merchants 200
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findReport, makeReport } from '../src/books/reports/index.ts';
import { streamTransactions } from '../src/books/reports/transactions.ts';
import { leavingNothing, started } from '../test/leave-nothing.ts';
import { measure, median } from './measure.ts';
import type { Stock } from './requests.ts';
import { type Serve, Stage } from './stage.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const DAY_MS = 86_400_000;
const DAYS = 364;
/** Tills that pause between two payments, and leave the machine idle time. */
const SHAPE = { connections: 32, seconds: 4, pauseMs: 100 };
const STREAMED = 100_000;

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '2000000' },
    merchants: { type: 'string', default: '200' },
  },
});
const rows = Number(values.rows);
const merchants = Number(values.merchants);

const print = (line: string) => process.stdout.write(`${line}\n`);
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(2);

async function p99(stage: Stage, serve: Serve, stock: Stock): Promise<number> {
  return (await measure(stage, serve, stock, 'redeem', SHAPE)).p99Ms;
}

/** Closes a day in a process of its own. @returns its duration, and the most memory that it held */
async function close(stage: Stage): Promise<{ took: string; mostMb: number }> {
  const from = performance.now();
  const env = { ...process.env, SCRIP_DATA_DIR: stage.folder, SCRIP_DATABASE_URL: '', SCRIP_KEYS: '' };
  const child = started(() => spawn(process.execPath, [MAIN, 'books', 'close'], { env, stdio: 'inherit' }));
  let mostKb = 0;
  while (child.exitCode === null) {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    mostKb = Math.max(mostKb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    await sleep(50);
  }
  if (child.exitCode !== 0) throw new Error(`the close ended with status ${child.exitCode}`);
  return { took: seconds(from), mostMb: Math.round(mostKb / 1_024) };
}

/** The close of yesterday beside tills, and tills alone before and after it. */
async function measureClose(stage: Stage, yesterday: number): Promise<void> {
  const producing = await stage.serve();
  const stock = await stage.stock(0, 0).finally(() => producing.stop());
  const { owner, merchantId } = stage;
  await owner.query(await readFile(new URL('./books.sql', import.meta.url), 'utf8'));
  await owner.query('select bench.fill_day($1, $2, $3)', [new Date(yesterday), rows, merchantId]);
  // The service opened today as the first day, before there were any rows.
  await owner.query('delete from book_days; update books set sealed_until = null');
  await owner.query('vacuum analyze journal, vouchers');
  const serve = await stage.serve(['--no-work']);
  try {
    await p99(stage, serve, stock);
    const alone = [await p99(stage, serve, stock), await p99(stage, serve, stock)];
    let isOver = false;
    const closing = close(stage).finally(() => {
      isOver = true;
    });
    const beside: number[] = [];
    while (!isOver) beside.push(await p99(stage, serve, stock));
    const { took, mostMb } = await closing;
    alone.push(await p99(stage, serve, stock), await p99(stage, serve, stock));
    const [without, meanwhile] = [median(alone), median(beside)];
    const list = (all: readonly number[]) => all.map((ms) => ms.toFixed(1)).join(' ');
    print(`close of a day with ${rows} rows: ${took} s, ${mostMb} MB`);
    const ratio = (meanwhile / without).toFixed(2);
    print(`redeem p99, ms: ${without.toFixed(1)} alone, ${meanwhile.toFixed(1)} beside it: ×${ratio}`);
    print(`  alone ${list(alone)}; beside ${list(beside)}`);
  } finally {
    await serve.stop();
  }
}

async function measureReports(stage: Stage, yesterday: number): Promise<void> {
  const { service } = stage.operator;
  const wanted = { to: dayOf(yesterday + DAY_MS), merchantId: stage.merchantId };
  await stage.owner.query('select bench.fill_year($1, $2, $3)', [dayOf(yesterday), DAYS, merchants]);
  await stage.owner.query('vacuum analyze book_movements, book_balances, book_reversals, book_closings');
  const from = dayOf(yesterday - DAYS * DAY_MS);
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
  for await (const _line of streamTransactions(service, { from: dayOf(yesterday), ...wanted }))
    if (++count === STREAMED) break;
  const grown = Math.round((process.memoryUsage().rss - before) / 1_048_576);
  print(`R8: ${count} transactions in ${seconds(since)} s; memory grew by ${grown} MB`);
}

await leavingNothing(async () => {
  const yesterday = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
  const stage = await Stage.open();
  await measureClose(stage, yesterday);
  await measureReports(stage, yesterday);
});
