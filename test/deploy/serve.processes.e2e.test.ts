import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { basic } from '../support/harness.ts';
import { ENVIRONMENT, MAIN } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** A service of several processes, one of which is killed in the middle of redemptions. */

const TILLS = 12;

type Serving = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  log(): string;
};

async function serve(t: TestContext): Promise<Serving> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-processes-'));
  const env = { ...ENVIRONMENT, SCRIP_DATA_DIR: folder, SCRIP_PORT: '0' };
  const child = spawn(process.execPath, [MAIN, 'serve', '--processes', '2'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (text: Buffer) => {
    out += text;
  });
  child.stderr.on('data', (text: Buffer) => {
    err += text;
  });
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  while (!out.endsWith('\n\n')) {
    assert.equal(child.exitCode, null, err);
    await sleep(20);
  }
  const [, url = ''] = /^Scrip serves (\S+)$/m.exec(out) ?? [];
  return { child, url, env, log: () => err };
}

/** The processes that answer: children of the first one that run the same program. */
async function answering({ child }: Serving): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found: number[] = [];
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (parent === child.pid && command.includes(MAIN)) found.push(Number(pid));
  }
  return found;
}

type Call = (path: string, body: object) => Promise<{ statusCode: string; data: Record<string, unknown> }>;

/** Creates a merchant. @returns a function that calls the service as this merchant, and its vouchers */
async function openShop({
  url,
  env,
}: Serving): Promise<{ call: Call; vouchers: { code: string; pin: string }[] }> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [MAIN, 'merchant', 'create', '--name', 'Till', '--float', '100000', '--json'],
    { env },
  );
  const { keyId, secret } = JSON.parse(stdout);
  const headers = {
    authorization: basic(keyId, secret),
    'content-type': 'application/json',
  };
  const call: Call = async (path, body) => {
    const response = await fetch(`${url}/api/v2${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return (await response.json()) as Awaited<ReturnType<Call>>;
  };
  const { data } = await call('/vouchers', { reference: 'stock', quantity: 10, value: 1000 });
  return { call, vouchers: data['vouchers'] as { code: string; pin: string }[] };
}

test('a process that is killed under load is replaced; every reference has exactly one effect', async (t) => {
  const serving = await serve(t);
  const { call, vouchers } = await openShop(serving);
  const before = await answering(serving);
  assert.equal(before.length, 2);

  let stopped = false;
  let answered = 0;
  let sent = 0;
  /** Repeats each redemption under its reference until it is answered. */
  const till = async (number: number) => {
    const { code, pin } = vouchers[number % vouchers.length] as { code: string; pin: string };
    for (let turn = 0; !stopped; turn++) {
      const body = { voucherCode: code, pin, amount: 0.01, reference: `sale-${number}-${turn}` };
      sent++;
      for (;;) {
        const answer = await call('/redeem', body).catch(() => undefined);
        if (answer === undefined) continue;
        assert.equal(answer.statusCode, '00');
        break;
      }
      answered++;
    }
  };
  const tills = Array.from({ length: TILLS }, (_, number) => till(number));
  await until('the tills are served', () => answered > 10 * TILLS);
  process.kill(before[0] as number, 'SIGKILL');
  await until('the process is replaced', async () => {
    const now = await answering(serving);
    return now.length === 2 && !now.includes(before[0] as number);
  });
  const after = answered;
  await until('the tills are served again', () => answered > after + 10 * TILLS);
  stopped = true;
  await Promise.all(tills);

  let spent = 0;
  for (const { code, pin } of vouchers) {
    const { data: found } = await call('/balance', { voucherCode: code, pin });
    spent += 100_000 - Math.round(Number(found['balance']) * 100);
  }
  assert.equal(spent, sent);
  assert.match(serving.log(), /a process that answers has died/);
  serving.child.kill('SIGTERM');
  const [status] = (await once(serving.child, 'close')) as [number];
  assert.equal(status, 0, serving.log().slice(-500));
  assert.deepEqual(await answering(serving), []);
});

test('a process that cannot start again is tried again until it can, and delays no stop', async (t) => {
  const serving = await serve(t);
  const keys = join(serving.env['SCRIP_DATA_DIR'] ?? '', 'keys');
  const started = () => serving.log().split('"msg":"serving"').length - 1;
  // The first process logs after it has written its address.
  await until('each process serves', () => started() === 3);
  const [first = 0] = await answering(serving);
  await rename(keys, `${keys}.away`);
  process.kill(first, 'SIGKILL');
  await until(
    'it fails twice',
    () => serving.log().split('the key ring of this database is missing').length > 2,
  );
  await rename(`${keys}.away`, keys);
  await until('it serves again', () => started() === 4);
  // One that cannot start may be on its way when the service is stopped.
  await rename(keys, `${keys}.away`);
  for (const pid of await answering(serving)) process.kill(pid, 'SIGKILL');
  await until(
    'it fails again',
    () => serving.log().split('the key ring of this database is missing').length > 3,
  );
  serving.child.kill('SIGTERM');
  const [status] = (await once(serving.child, 'close')) as [number];
  assert.equal(status, 0, serving.log().slice(-500));
});

test('a process that is killed while the first one has a message for it is replaced', async (t) => {
  const serving = await serve(t);
  const { child, env } = serving;
  const keys = join(env['SCRIP_DATA_DIR'] ?? '', 'keys');
  const before = await answering(serving);
  await rename(keys, `${keys}.away`);
  process.kill(before[0] as number, 'SIGKILL');
  const next = await until('another process starts', async () =>
    (await answering(serving)).find((pid) => !before.includes(pid)),
  );
  child.kill('SIGSTOP');
  // It takes its leave of the first process, and waits for the answer.
  await until('it cannot start', () => serving.log().includes('the key ring of this database is missing'));
  process.kill(next, 'SIGKILL');
  await until('it has died', async () => !(await answering(serving)).includes(next));
  await rename(`${keys}.away`, keys);
  child.kill('SIGCONT');
  await until('it is replaced', async () => {
    assert.equal(child.exitCode, null, serving.log().slice(-500));
    const now = await answering(serving);
    return now.length === 2 && !now.includes(next);
  });
});

test('the other processes end when the first process is killed', async (t) => {
  const serving = await serve(t);
  const others = await answering(serving);
  assert.equal(others.length, 2);
  serving.child.kill('SIGKILL');
  await once(serving.child, 'close');
  for (const pid of others) {
    for (;;) {
      const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      if (state === '' || / Z /.test(state)) break;
      await sleep(20);
    }
  }
  // The next command finds and stops the database, which still runs.
  await promisify(execFile)(process.execPath, [MAIN, 'merchant', 'list', '--json'], { env: serving.env });
});
