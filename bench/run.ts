/**
 * `npm run bench`: redemptions a second over HTTP, with everything switched on, beside the yardstick on the same server in
 * the same run: pgbench (where it is installed, else a loop of single calls) with one stored function a redemption.
 * What counts is the ratio: these machines are shared, and a figure alone says little. Both sides take turns.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { findBatch, readVouchers } from '../src/batches/download.ts';
import { generate } from '../src/batches/generate.ts';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import type { Context, Service } from '../src/context.ts';
import { openEmbedded } from '../src/db/embedded.ts';
import { createLogger } from '../src/log.ts';
import { authenticate } from '../src/merchants/authenticate.ts';
import { createMerchant } from '../src/merchants/merchants.ts';
import { yardstick } from './yardstick.ts';

const VOUCHERS = 20_000;
const TURNS = 3;
const SECONDS = 5;
const CONNECTIONS = [64, 128, 256];
const SERVICE = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const LOAD = fileURLToPath(new URL('./load.ts', import.meta.url));

type Load = { perSecond: number; p50Ms: number; p99Ms: number; failed: number };

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
const round = (figure: number) => Math.round(figure).toLocaleString('en');
const print = (line: string) => process.stdout.write(`${line}\n`);

const folder = await mkdtemp(join(tmpdir(), 'scrip-bench-'));
try {
  await bench();
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function bench(): Promise<void> {
  const port = await freePort();
  const env = {
    ...process.env,
    SCRIP_DATA_DIR: folder,
    SCRIP_PORT: String(port),
    SCRIP_DATABASE_URL: '',
    SCRIP_KEYS: '',
  };
  const config = readConfig(env);
  const log = createLogger('warn');
  const embedded = await openEmbedded(folder, log);
  const { service, close } = await openService('scrip-bench', config, log);
  // The access log is on, as it is in service; it goes where nobody reads it.
  const serve = spawn(process.execPath, [SERVICE, 'serve'], { env, stdio: ['ignore', 'ignore', 'ignore'] });
  serve.once('exit', (code) => {
    if (code) throw new Error(`the service ended with status ${code}`);
  });
  try {
    const merchant = await prepare(service, port);
    await (await owner(embedded.ownerUrl)).end();
    const results: { http: number; calls: number }[] = [];
    for (let turn = 1; turn <= TURNS; turn++) {
      const calls = await yardstick({ url: embedded.ownerUrl, seconds: SECONDS, ...merchant });
      const http = await best(port, merchant.authorization, turn);
      results.push({ http: http.perSecond, calls });
      print(
        `turn ${turn}: HTTP ${round(http.perSecond)}/s (p50 ${http.p50Ms} ms, p99 ${http.p99Ms} ms, failed ${http.failed})`,
      );
      print(`        one stored function a call ${round(calls)}/s, ratio ${(http.perSecond / calls).toFixed(2)}`);
      if (http.failed > 0) process.exitCode = 1;
    }
    const ratios = results.map(({ http, calls }) => http / calls).sort((one, other) => one - other);
    print(
      `redeem: median ratio ${ratios[Math.floor(ratios.length / 2)]?.toFixed(2)} of HTTP to single stored-function calls`,
    );
  } finally {
    serve.kill('SIGTERM');
    await new Promise((resolve) => serve.once('exit', resolve));
    await close();
    await embedded.release();
  }
}

async function owner(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(await readFile(new URL('./yardstick.sql', import.meta.url), 'utf8'));
  return client;
}

/** A merchant with vouchers to redeem from, waiting until the service is up and has made them. */
async function prepare(service: Service, port: number) {
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
  await generate(context, { reference: 'bench', quantity: VOUCHERS, value: 100_000 });
  const serials = await save(context);
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok) await pause();
  return { merchantId: made.id, authorization, ...serials };
}

async function save(context: Context): Promise<{ firstSerial: bigint; lastSerial: bigint }> {
  let batch = await findBatch(context, 'bench');
  for (; batch.status === 'PROCESSING'; batch = await findBatch(context, 'bench')) await pause();
  const vouchers: { code: string; pin: string }[] = [];
  let firstSerial = 0n;
  let lastSerial = 0n;
  for await (const page of readVouchers(context.service, batch)) {
    firstSerial ||= page[0]?.serialNumber ?? 0n;
    lastSerial = page.at(-1)?.serialNumber ?? 0n;
    vouchers.push(...page.map(({ code, pin }) => ({ code, pin })));
  }
  await writeFile(join(folder, 'vouchers.json'), JSON.stringify(vouchers), { mode: 0o600 });
  return { firstSerial, lastSerial };
}

/** The best of several numbers of connections, as the yardstick is the best of several numbers of clients. */
async function best(port: number, authorization: string, turn: number): Promise<Load> {
  let found: Load | undefined;
  for (const connections of CONNECTIONS) {
    const run = `t${turn}-${connections}`;
    const url = `http://127.0.0.1:${port}/merchant-client/v2/redeem`;
    const plan = {
      url,
      authorization,
      vouchersFile: join(folder, 'vouchers.json'),
      connections,
      seconds: SECONDS,
      run,
    };
    const load = await runLoad(JSON.stringify(plan));
    if (!found || load.perSecond > found.perSecond) found = load;
  }
  return found as Load;
}

function runLoad(plan: string): Promise<Load> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [LOAD, plan], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    child.once('exit', (code) =>
      code === 0 ? resolve(JSON.parse(text) as Load) : reject(new Error('the load ended badly')),
    );
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
