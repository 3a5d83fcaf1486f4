import assert from 'node:assert/strict';
import { mkdir, rm } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import { requireSandbox, sandboxConfig } from '../../src/cli/sandbox.ts';
import { readConfig } from '../../src/config.ts';
import type { SandboxSet } from '../../src/http/sandbox.ts';
import { PRECEDENCE, REFUSALS } from '../../src/refusal.ts';
import { DAY_MS, MINUTE_MS } from '../../src/time.ts';
import { basic, testDatabase } from '../support/harness.ts';
import { Installation } from '../support/installation.ts';
import { Receiver, verify } from '../support/receiver.ts';
import { ofFile } from '../support/scope.ts';
import { until } from '../support/until.ts';

type Page = SandboxSet & { amounts: { amount: string; effect: string }[] };

let installation: Installation;
let baseUrl: string;
let page: Page;
const t = ofFile();

before(async () => {
  installation = await Installation.make(t);
  baseUrl = await installation.serve('--sandbox');
  page = (await (await fetch(`${baseUrl}/sandbox`)).json()) as Page;
});

async function call(path: string, body: object) {
  const authorization = basic(page.keyId, page.secret);
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return {
    status: response.status,
    headers: response.headers,
    ...((await response.json()) as { statusCode: string }),
  };
}

const redeem = (state: string, amount: number, reference?: string) => {
  const { code, pin } = voucherIn(state);
  return call('/merchant-client/v2/redeem', { code, pin, amount, ...(reference && { reference }) });
};

const advance = async (body: unknown) => {
  const response = await fetch(`${baseUrl}/sandbox/clock`, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, ...((await response.json()) as { now: string; statusCode?: string }) };
};

const voucherIn = (state: string) => page.vouchers.find((each) => each.state === state) ?? assert.fail(state);

describe('a sandbox', () => {
  test('has a voucher in every state, with the answer that its page shows', async () => {
    for (const { state, redeemAnswers } of page.vouchers) {
      const expected = redeemAnswers.slice(0, 2);
      assert.equal((await redeem(state, 0.01)).statusCode, expected, state);
    }
    const update = { reference: page.updatedReference, amountUsed: 1 };
    assert.equal((await call('/merchant-client/v2/redemptions/update', update)).statusCode, '58');
    const { serialNumber } = voucherIn('INACTIVE');
    const activated = await call('/api/v2/activate', {
      serialNumber: Number(serialNumber),
      reference: 'act-1',
    });
    assert.equal(activated.statusCode, '00');
  });

  test('answers each reserved amount with its refusal, in both variants', async () => {
    const refusals = page.amounts.filter(({ amount }) => amount.startsWith('9999.'));
    assert.deepEqual(
      refusals.map(({ effect }) => effect),
      PRECEDENCE.filter((code) => !['58', '98'].includes(code)).map((code) => `${code} ${REFUSALS[code]}`),
    );
    const { code, pin } = voucherIn('ACTIVE');
    for (const { amount, effect } of refusals) {
      const body = { pin, amount: Number(amount) };
      const inA = await call('/merchant-client/v2/redeem', { ...body, code });
      const inB = await call('/api/v2/redeem', { ...body, voucherCode: code, reference: `b-${amount}` });
      assert.deepEqual([inA.statusCode, inB.statusCode], [effect.slice(0, 2), effect.slice(0, 2)]);
    }
    assert.equal((await redeem('ACTIVE', 9_999.91)).headers.get('retry-after'), '1');
    assert.equal((await redeem('ACTIVE', 9_997.03)).statusCode, '96');
  });

  test('drops answers before and after the work, so that clients can test retries', async () => {
    const order = (value: number, reference: string) =>
      call('/api/v2/vouchers', { quantity: 1, value, reference });
    await assert.rejects(order(9_997.01, 'lost-before'));
    await assert.rejects(order(9_997.02, 'lost-after'));
    const authorization = basic(page.keyId, page.secret);
    const found = async (reference: string) =>
      (
        (await (
          await fetch(`${baseUrl}/api/v2/vouchers/${reference}`, { headers: { authorization } })
        ).json()) as { statusCode: string }
      ).statusCode;
    assert.deepEqual([await found('lost-before'), await found('lost-after')], ['60', '00']);
    const { code, pin } = page.vouchers.find((each) => /10000/.test(each.redeemAnswers)) ?? assert.fail();
    const payment = { code, pin, amount: 9_997.02, reference: 'lost-payment' };
    await assert.rejects(call('/merchant-client/v2/redeem', payment));
    const copy = await call('/merchant-client/v2/redeem', payment);
    assert.deepEqual([copy.statusCode, copy.headers.get('idempotent-replayed')], ['00', 'true']);
    const startedAt = Date.now();
    assert.equal((await order(9_998.01, 'late')).statusCode, '00');
    assert.ok(Date.now() - startedAt >= 1_000);
  });

  test('makes new vouchers, and shows them on a page', async () => {
    const renewed = await fetch(`${baseUrl}/sandbox/vouchers`, { method: 'POST' });
    const again = (await renewed.json()) as Page;
    assert.notEqual(again.vouchers[0]?.code, page.vouchers[0]?.code);
    assert.equal(again.keyId, page.keyId);
    const html = await (await fetch(`${baseUrl}/sandbox`, { headers: { accept: 'text/html' } })).text();
    for (const { code, state } of again.vouchers) {
      assert.ok(html.includes(code));
      assert.ok(html.includes(state));
    }
    for (const { amount } of again.amounts) assert.ok(html.includes(amount));
  });
});

test('the clock of a sandbox is advanced past a lock, an expiry, a day, a webhook', async (t) => {
  const own = await Installation.make(t);
  baseUrl = await own.serve('--sandbox');
  page = (await (await fetch(`${baseUrl}/sandbox`)).json()) as Page;
  const receiver = await Receiver.start();
  t.after(() => receiver.stop());
  receiver.answer(503);
  Object.assign(own.settings, {
    SCRIP_DATA_DIR: own.at('data-sandbox'),
    SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
  });
  const { secret } = await own.json`webhook add --merchant 1 --url ${receiver.url} --event voucher.redeemed`;
  assert.equal((await redeem('PIN LOCKED', 1)).statusCode, '75');
  assert.equal((await redeem('ACTIVE', 1)).statusCode, '00');
  // The first attempt and the second, after five seconds. The third is due after five minutes.
  await receiver.has(2);

  for (const wrong of [undefined, 16, '16 minutes', 'P', 'PT', '-PT1M', 'P1Y2D', 'PT1.5H'])
    assert.deepEqual(
      await advance({ advance: wrong }).then(({ status, statusCode }) => [status, statusCode]),
      [400, '30'],
    );
  const before = Date.now();
  const { now } = await advance({ advance: 'PT16M' });
  assert.ok(Date.parse(now) >= before + 16 * MINUTE_MS && Date.parse(now) <= Date.now() + 16 * MINUTE_MS);
  assert.equal((await redeem('PIN LOCKED', 1)).statusCode, '00');
  const [, , third] = await receiver.has(3);
  // A receiver compares the time of the signature with its own clock.
  verify(third ?? assert.fail(), secret);

  await advance({ advance: 'P1D' });
  await until('the day is closed', async () =>
    (await own.json('books', 'days')).some(({ state }: { state: string }) => state === 'closed'),
  );
  // While days are closed, and several at once.
  const all = await Promise.all(
    ['P1Y', ...Array<string>(7).fill('PT1M')].map((each) => advance({ advance: each })),
  );
  assert.deepEqual(
    all.map(({ status }) => status),
    Array(8).fill(200),
  );
  assert.equal((await redeem('ACTIVE', 1)).statusCode, '54');
  // The clock stays ahead after a restart, for the service and for commands.
  await own.stop();
  baseUrl = await own.serve('--sandbox');
  const again = (await (await fetch(`${baseUrl}/sandbox`)).json()) as { now: string };
  assert.ok(Date.parse(again.now) >= before + 366 * DAY_MS);
  const { out } = await own.run(['reconcile', '--full', '--json']);
  assert.deepEqual(
    JSON.parse(out).checks.filter(({ ok }: { ok: boolean }) => !ok),
    [],
  );
});

test('a sandbox refuses a database that is not a sandbox', async (t) => {
  const { url } = await testDatabase(t);
  const real = await Installation.make(t);
  const folder = real.at('data');
  await real.fails(
    /a sandbox has a database of its own, and SCRIP_DATABASE_URL is set/,
    ['serve', '--sandbox'],
    {
      SCRIP_DATABASE_URL: url,
    },
  );
  // A real database in the folder of the sandbox.
  await mkdir(real.at('data-sandbox'));
  await real.run(['migrate'], { SCRIP_DATA_DIR: real.at('data-sandbox') });
  await real.fails(/contains a database that is not a sandbox: remove it/, ['serve', '--sandbox']);
  await rm(real.at('data-sandbox'), { recursive: true });
  const config = sandboxConfig(readConfig({ SCRIP_DATA_DIR: folder, SCRIP_KEYS: '' }));
  assert.deepEqual([config.dataDir, config.keys], [`${folder}-sandbox`, undefined]);
  // A command in the shell of a sandbox uses the same sandbox.
  assert.equal(sandboxConfig(config).dataDir, config.dataDir);
  await requireSandbox(config);
});

test('a real service refuses the data folder of a sandbox', async (t) => {
  const real = await Installation.make(t);
  const config = sandboxConfig(readConfig({ SCRIP_DATA_DIR: real.at('data') }));
  await requireSandbox(config);
  for (const command of ['serve', 'work'])
    await real.fails(/is that of a sandbox: start it with --sandbox/, [command], {
      SCRIP_DATA_DIR: config.dataDir,
    });
});

test('a real service has neither the page nor the reserved amounts', async (t) => {
  const real = await Installation.make(t);
  const url = await real.serve();
  assert.equal((await fetch(`${url}/sandbox`)).status, 404);
  const { keyId, secret } = await real.json('merchant', 'create', '--name', 'Kiosk', '--float', '100000');
  const authorization = basic(keyId, secret);
  const response = await fetch(`${url}/api/v2/vouchers`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ quantity: 1, value: 9_999.51, reference: 'real' }),
  });
  assert.equal(((await response.json()) as { statusCode: string }).statusCode, '00');
});
