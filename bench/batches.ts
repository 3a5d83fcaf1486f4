/**
 * `npm run bench:batches`: how fast batches are produced beside what COPY alone reaches on the same tables, taking turns on
 * one server; what the tills notice of it; and how much memory the service takes for it and for a download.
 * Everything runs in one `scrip serve`, as it does for whoever starts it so. Ratios count: the machine is shared.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findBatch, readVouchers } from '../src/batches/download.ts';
import { generate } from '../src/batches/generate.ts';
import { copyEntries, copyVouchers, reserveSerials } from '../src/batches/queries.ts';
import { firstRows, makeRows } from '../src/batches/rows.ts';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import type { Context, Service } from '../src/context.ts';
import { openEmbedded } from '../src/db/embedded.ts';
import { openOwner } from '../src/db/pool.ts';
import { createLogger } from '../src/log.ts';
import { authenticate } from '../src/merchants/authenticate.ts';
import { createMerchant } from '../src/merchants/merchants.ts';
import { median } from './measure.ts';
import { type Load, play } from './play.ts';
import { requestsOf, type Stock, type Voucher } from './requests.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const PORT = 28_473;
const TURNS = 3;
/** Vouchers of a turn of production, and of COPY. */
const COUNT = 200_000;
/** A batch that outlasts the load beside it. */
const LONG = 400_000;
const SECONDS = 8;
/** A shop on an ordinary day, and as many calls as the service can take (pauses need wrk). */
const SHAPES = [
  { name: 'tills with pauses', connections: 32, pauseMs: 20 },
  { name: 'tills without pauses', connections: 64, pauseMs: 0 },
];
const REQUESTS = 200_000;
/** A request that allocates for every voucher would take hundreds of megabytes. */
const MOST_GROWTH_MB = 50;
const MOST_P99_RATIO = 3;
const LEAST_COPY_RATIO = 0.5;

const round = (figure: number) => Math.round(figure).toLocaleString('en');
const print = (line: string) => process.stdout.write(`${line}\n`);

const folder = await mkdtemp(join(tmpdir(), 'scrip-bench-'));
try {
  await bench();
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function bench(): Promise<void> {
  const env = {
    ...process.env,
    SCRIP_DATA_DIR: folder,
    SCRIP_PORT: String(PORT),
    SCRIP_DATABASE_URL: '',
    SCRIP_KEYS: '',
  };
  const log = createLogger('warn');
  const embedded = await openEmbedded(folder, log);
  const { service, close } = await openService('scrip-bench', readConfig(env), log);
  const serve = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: ['ignore', 'ignore', 'ignore'] });
  try {
    while (!(await fetch(`http://127.0.0.1:${PORT}/readyz`).catch(() => undefined))?.ok) await sleep(50);
    const { context, stock } = await prepare(service, embedded.ownerUrl);
    await measureProduction(context);
    await measureTills(context, stock, serve);
    await measureDownload(serve, stock.authorization);
  } finally {
    serve.kill('SIGTERM');
    await new Promise((resolve) => serve.once('exit', resolve));
    await close();
    await embedded.release();
  }
}

/** A merchant with vouchers to redeem from, and a product of any quantity. */
async function prepare(service: Service, ownerUrl: string) {
  const owner = await openOwner(ownerUrl);
  await owner
    .query({ text: 'update scrip.products set max_quantity = 5000000', values: [] })
    .finally(() => owner.close());
  const made = await createMerchant(
    { service, actor: { name: 'bench', origin: 'bench', reason: null } },
    {
      name: 'Bench',
      permit: [],
      opaque: false,
      productId: 1,
      float: { currency: 'USD', amountMinor: 1_000_000_000_000n },
    },
  );
  const authorization = `Basic ${Buffer.from(`${made.keyId}:${made.secret}`).toString('base64')}`;
  const { context } = await authenticate(service, authorization);
  await produced(context, 'tills', 10_000, 10_000);
  const vouchers: Voucher[] = [];
  for await (const page of readVouchers(service, await findBatch(context, 'tills')))
    vouchers.push(...page.map(({ serialNumber, code, pin }) => ({ serial: serialNumber, code, pin })));
  const none: never[] = [];
  const stock: Stock = {
    authorization,
    vouchers,
    quiet: none,
    inactive: none.values(),
    redeemed: none,
    updatable: none.values(),
  };
  return { context, stock };
}

/** Orders a batch and waits until the service has made it; vouchers a second. */
async function produced(context: Context, reference: string, quantity: number, value: number): Promise<number> {
  const start = performance.now();
  await generate(context, { reference, quantity, value });
  while ((await findBatch(context, reference)).status === 'PROCESSING') await sleep(50);
  return quantity / ((performance.now() - start) / 1000);
}

/**
 * The same rows by COPY alone: one statement a table, with everything made beforehand. A code that exists already, which so many
 * rows at once do meet, fails it: then it is made again.
 */
async function copied(context: Context, count: number): Promise<number> {
  return copyOnce(context, count).catch((error: { constraint?: string }) => {
    if (error.constraint !== 'vouchers_code_unique') throw error;
    return copied(context, count);
  });
}

async function copyOnce({ service }: Context, count: number): Promise<number> {
  const { db, keys } = service;
  const [reserved] = await db.query<{ serials: string[] }>(reserveSerials(count));
  const now = new Date();
  const rows = makeRows(keys, {
    serials: (reserved?.serials ?? []).map(BigInt),
    batchId: 0,
    expiresAt: now,
    now,
    activation: { amountMinor: 1n, currency: 'USD', merchantId: 1, reserveAccount: 1n, at: now },
  });
  const start = performance.now();
  await db.transaction(async (tx) => {
    await tx.copyIn(copyVouchers, firstRows(rows.vouchers, count));
    if (rows.entries) await tx.copyIn(copyEntries, firstRows(rows.entries, count));
  });
  return count / ((performance.now() - start) / 1000);
}

async function measureProduction(context: Context): Promise<void> {
  const ratios: number[] = [];
  for (let turn = 1; turn <= TURNS; turn++) {
    const copy = await copied(context, COUNT);
    const own = await produced(context, `turn ${turn}`, COUNT, 0.01);
    ratios.push(own / copy);
    print(`production, turn ${turn}: ${round(own)}/s, COPY alone ${round(copy)}/s, ratio ${(own / copy).toFixed(2)}`);
  }
  const ratio = median(ratios);
  print(`production: median ratio ${ratio.toFixed(2)} (at least ${LEAST_COPY_RATIO})`);
  if (ratio < LEAST_COPY_RATIO) process.exitCode = 1;
}

async function measureTills(context: Context, stock: Stock, serve: ChildProcess): Promise<void> {
  for (const shape of SHAPES) {
    const ratios: number[] = [];
    for (let turn = 1; turn <= TURNS; turn++) {
      const name = `${shape.name}, turn ${turn}`;
      const idle = await runLoad(shape, `idle ${name}`, stock);
      const memory = watchMemory(serve);
      const production = produced(context, `long ${name}`, LONG, 0.01);
      // Awaited below; until then its failure must not hide that of the load.
      production.catch(() => {});
      const busy = await runLoad(shape, `busy ${name}`, stock);
      const { produced: made } = await findBatch(context, `long ${name}`);
      const { before, peak } = await memory.stop();
      ratios.push(busy.p99Ms / idle.p99Ms);
      print(
        `${name}: without a batch ${told(idle)}; with one ${told(busy)}, ${round(made / SECONDS)} vouchers/s meanwhile`,
      );
      print(
        `        p99 ratio ${(busy.p99Ms / idle.p99Ms).toFixed(2)}; memory ${before} MB before, ${peak} MB at most`,
      );
      if (idle.failed + busy.failed > 0) process.exitCode = 1;
      await production;
    }
    print(`${shape.name}: median p99 ratio ${median(ratios).toFixed(2)} (at most ${MOST_P99_RATIO})`);
    if (median(ratios) > MOST_P99_RATIO) process.exitCode = 1;
  }
}

function told({ perSecond, p50Ms, p99Ms, failed }: Load): string {
  return `p50 ${p50Ms} ms, p99 ${p99Ms} ms at ${round(perSecond)}/s${failed > 0 ? `, ${failed} failed` : ''}`;
}

/** Redemptions under references of their own, on vouchers that do not run dry. */
async function runLoad(shape: (typeof SHAPES)[number], run: string, stock: Stock): Promise<Load> {
  const file = join(folder, 'requests');
  await writeFile(file, requestsOf('redeem', stock, run, REQUESTS), { mode: 0o600 });
  const { connections, pauseMs } = shape;
  return play({ url: `http://127.0.0.1:${PORT}`, file, connections, seconds: SECONDS, pauseMs });
}

/** Downloads the longest batch, plain and with gzip, reading as fast as it comes. */
async function measureDownload(serve: ChildProcess, authorization: string): Promise<void> {
  const path = `/api/v2/vouchers/${encodeURIComponent(`long ${SHAPES[0]?.name}, turn 1`)}`;
  for (const encoding of ['identity', 'gzip']) {
    const memory = watchMemory(serve);
    const start = performance.now();
    const response = await fetch(`http://127.0.0.1:${PORT}${path}`, {
      headers: { authorization, 'accept-encoding': encoding },
    });
    let bytes = 0;
    for await (const chunk of response.body ?? []) bytes += chunk.length;
    const seconds = (performance.now() - start) / 1000;
    const { before, peak } = await memory.stop();
    print(
      `download of ${round(LONG)}, ${response.headers.get('content-encoding') ?? 'plain'}: ${round(bytes / 1e6)} MB (unpacked) in ${seconds.toFixed(1)} s; memory ${before} MB before, ${peak} MB at most`,
    );
    if (peak - before > MOST_GROWTH_MB) process.exitCode = 1;
  }
}

/** The resident memory of a process, in megabytes, looked at ten times a second (Linux). */
function watchMemory({ pid }: ChildProcess) {
  const look = async () =>
    Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  let peak = 0;
  const first = look();
  const timer = setInterval(async () => {
    peak = Math.max(peak, await look());
  }, 100);
  return {
    async stop() {
      clearInterval(timer);
      return { before: Math.round(await first), peak: Math.round(Math.max(peak, await look())) };
    },
  };
}
