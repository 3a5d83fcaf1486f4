import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Receiver, verify } from '../support/receiver.ts';
import { MAIN } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/**
 * The service as an operator runs it, killed with its database in the middle of redemptions and of a
 * large batch.
 */

const TILLS = 16;
const QUANTITY = 30_000;
const CRASHES = 2;

type Sent = { readonly reference: string; transactionId: string | undefined };

let folder: string;
let port: number;
let authorization: string;
let serve: ChildProcess;
let receiver: Receiver;
let secret: string;

const environment = () => ({
  ...process.env,
  SCRIP_DATA_DIR: folder,
  SCRIP_PORT: String(port),
  SCRIP_DATABASE_URL: '',
  SCRIP_KEYS: '',
  SCRIP_LOG_LEVEL: 'fatal',
  SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
});

async function scrip(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { env: environment() });
  return stdout;
}

async function start(): Promise<void> {
  serve = spawn(process.execPath, [MAIN, 'serve'], { env: environment(), stdio: 'ignore' });
  const ready = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('the service has started', ready);
}

/** Kills both at once, as a power cut does, except for the disk. */
async function killAll(): Promise<void> {
  const database = Number(
    (await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0],
  );
  const ended = new Promise((resolve) => serve.once('exit', resolve));
  serve.kill('SIGKILL');
  process.kill(database, 'SIGKILL');
  await ended;
}

async function call(path: string, body?: object) {
  const response = await fetch(`http://127.0.0.1:${port}/api/v2${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as { statusCode: string; data: Record<string, unknown> };
}

/** Redeems until the service is gone. The last request has no answer, and an unknown outcome. */
async function till(
  number: number,
  crash: number,
  voucher: { code: string; pin: string },
  sent: Sent[],
): Promise<void> {
  for (let turn = 0; ; turn++) {
    const one: Sent = { reference: `sale-${crash}-${number}-${turn}`, transactionId: undefined };
    sent.push(one);
    const body = { voucherCode: voucher.code, pin: voucher.pin, amount: 0.01, reference: one.reference };
    const answer = await call('/redeem', body).catch(() => undefined);
    if (answer?.statusCode !== '00') return;
    one.transactionId = String(answer.data['transactionId']);
  }
}

const answered = (sent: readonly Sent[]) =>
  sent.filter(({ transactionId }) => transactionId !== undefined).length;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-crash-'));
  port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
  await scrip('migrate', '--json');
  const made = JSON.parse(
    await scrip('merchant', 'create', '--name', 'Crash', '--float', '10000000', '--json'),
  );
  authorization = `Basic ${Buffer.from(`${made.keyId}:${made.secret}`).toString('base64')}`;
  receiver = await Receiver.start();
  const hook = await scrip('webhook', 'add', '--merchant', made.id, '--url', receiver.url, '--json');
  secret = JSON.parse(hook).secret;
  await start();
});

after(async () => {
  const ended = new Promise((resolve) => serve.once('exit', resolve));
  serve.kill('SIGTERM');
  await ended;
  await receiver.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('a service killed together with its database', () => {
  it('loses no acknowledged redemption, and books each other one at most once', async () => {
    const { data } = await call('/vouchers', { reference: 'stock', quantity: 10, value: 1000 });
    const vouchers = data['vouchers'] as { code: string; pin: string }[];
    assert.equal(
      (await call('/vouchers', { reference: 'large', quantity: QUANTITY, value: 1 })).statusCode,
      '00',
    );
    const sent: Sent[] = [];
    for (let crash = 1; crash <= CRASHES; crash++) {
      const tills = Array.from({ length: TILLS }, (_, number) =>
        till(number, crash, vouchers[number % vouchers.length] as { code: string; pin: string }, sent),
      );
      // In the middle of work, however slow the machine is.
      const before = answered(sent);
      while (answered(sent) < before + 4 * TILLS) await sleep(20);
      await killAll();
      await Promise.all(tills);
      await start();
    }
    const acknowledged = sent.filter(({ transactionId }) => transactionId !== undefined);
    assert.ok(acknowledged.length > TILLS * CRASHES, 'the service was killed before it had work');
    for (const { reference, transactionId } of acknowledged) {
      assert.equal(
        (await call(`/transactions/${reference}`)).data['transactionId'],
        transactionId,
        reference,
      );
    }
    for (const one of sent) {
      const number = Number(one.reference.split('-')[2]);
      const voucher = vouchers[number % vouchers.length] as { code: string; pin: string };
      const again = await call('/redeem', {
        voucherCode: voucher.code,
        pin: voucher.pin,
        amount: 0.01,
        reference: one.reference,
      });
      assert.equal(again.statusCode, '00', one.reference);
    }
    let spent = 0;
    for (const { code, pin } of vouchers) {
      spent +=
        100_000 -
        Math.round(Number((await call('/balance', { voucherCode: code, pin })).data['balance']) * 100);
    }
    assert.equal(spent, sent.length, 'each reference has exactly one effect');

    // Every redemption is notified at least once, always under the same id.
    const redeemed = () => receiver.received.filter(({ body }) => body.type === 'voucher.redeemed');
    const ids = () =>
      new Map(redeemed().map(({ headers, body }) => [headers['webhook-id'], body.data.reference]));
    await until('every redemption is announced', () => ids().size >= sent.length);
    assert.deepEqual([...ids().values()].sort(), sent.map(({ reference }) => reference).sort());
    for (const event of redeemed()) assert.ok(verify(event, secret));
  });

  it('completes the batch with exactly the quantity ordered', async () => {
    let batch = await call('/vouchers/large');
    await until('the batch is produced', async () => {
      batch = await call('/vouchers/large');
      return batch.data['status'] !== 'PROCESSING';
    });
    assert.equal(batch.data['status'], 'COMPLETED');
    const vouchers = batch.data['vouchers'] as { code: string; serialNumber: number }[];
    assert.equal(new Set(vouchers.map(({ code }) => code)).size, QUANTITY);
    const completed = () => receiver.received.find(({ body }) => body.data.reference === 'large');
    while (!completed()) await sleep(50);
    assert.equal(completed()?.body.data.quantity, QUANTITY);
    assert.equal(JSON.parse(await scrip('reconcile', '--json')).ok, true);
  });
});
