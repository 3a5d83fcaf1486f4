import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findBatch, readVouchers } from '../src/batches/download.ts';
import { fillBatch } from '../src/batches/fill.ts';
import { generate } from '../src/batches/generate.ts';
import type { Context } from '../src/context.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { authenticate } from '../src/merchants/authenticate.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { balance } from '../src/vouchers/balance.ts';
import { startTestService, type TestService } from './harness.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

let testService: TestService;

before(async () => {
  testService = await startTestService();
});

after(async () => {
  await testService?.stop();
});

type Ran = { readonly status: number; readonly out: string; readonly err: string };

/** Runs `scrip` as an operator does, beside the service that works on the same database. */
function scrip(...args: string[]): Promise<Ran> {
  const env = {
    PATH: process.env['PATH'],
    SCRIP_DATABASE_URL: testService.url,
    SCRIP_KEYS: testService.keys,
    SCRIP_DATA_DIR: tmpdir(),
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env }, (error, out, err) => {
      resolve({ status: error ? Number(error.code) : 0, out, err });
    });
  });
}

/** Runs a command that must succeed, and reads the one JSON document that it prints. */
async function json(...args: string[]) {
  const { status, out, err } = await scrip(...args, '--json');
  assert.equal(err, '');
  assert.equal(status, 0);
  return JSON.parse(out);
}

/** Runs a command that must fail with one line that says why, and nothing on stdout. */
async function fails(expected: RegExp, ...args: string[]): Promise<void> {
  const { status, out, err } = await scrip(...args);
  assert.notEqual(status, 0);
  assert.equal(out, '');
  assert.match(err, expected);
  assert.match(err, /^scrip: [^\n]+\n(\(try --help\)\n)?$/);
}

const enter = async ({ keyId, secret }: { keyId: string; secret: string }): Promise<Context> =>
  (await authenticate(testService.service, `Basic ${btoa(`${keyId}:${secret}`)}`)).context;

async function makeVouchers(context: Context, reference: string, quantity: number, value = 30) {
  await generate(context, { reference, quantity, value });
  return vouchersOf(context, reference);
}

async function vouchersOf(context: Context, reference: string) {
  const vouchers = [];
  for await (const page of readVouchers(context.service, await findBatch(context, reference))) vouchers.push(...page);
  return vouchers;
}

type Made = Awaited<ReturnType<typeof vouchersOf>>[number];

describe('scrip merchant', () => {
  test('create makes a merchant that can call at once', async () => {
    const made = await json(
      'merchant',
      'create',
      '--name',
      'Kiosk',
      '--permit',
      'update-redemption',
      '--float',
      '99.95',
    );
    assert.deepEqual(Object.keys(made), ['id', 'name', 'keyId', 'secret']);
    const { merchant } = await enter(made);
    assert.equal(merchant.id, Number(made.id));
    assert.ok(merchant.permissions.has('update-redemption'));
    assert.deepEqual(await json('float', 'show', '--merchant', made.id), [{ currency: 'USD', balance: 99.95 }]);
    const listed = (await json('merchant', 'list')).find(({ id }: { id: unknown }) => id === made.id);
    assert.equal(listed.name, 'Kiosk');
  });

  test('permit, forbid, suspend, resume and set take its id', async () => {
    const { id } = await json('merchant', 'create', '--name', 'Changing');
    for (const change of [
      ['permit', id, 'update-redemption'],
      ['forbid', id, 'generate'],
      ['suspend', id],
      ['set', id, '--opaque'],
    ]) {
      assert.equal((await scrip('merchant', ...change)).status, 0);
    }
    const changed = await json('merchant', 'show', id);
    assert.deepEqual([...changed.permissions].sort(), ['activate', 'balance', 'redeem', 'update-redemption']);
    assert.ok(changed.suspendedAt);
    assert.equal(changed.opaque, true);
    assert.equal((await scrip('merchant', 'resume', id)).status, 0);
    assert.equal((await json('merchant', 'show', id)).suspendedAt, null);
  });

  test('says in one line what is wrong, and makes nothing', async () => {
    const before = await json('merchant', 'list');
    await Promise.all([
      fails(/decimals/, 'merchant', 'create', '--name', 'Wrong', '--float', '1.005'),
      fails(/above zero/, 'merchant', 'create', '--name', 'Wrong', '--float', '0'),
      fails(/amount such as/, 'merchant', 'create', '--name', 'Wrong', '--float', 'much'),
      fails(/permission/, 'merchant', 'create', '--name', 'Wrong', '--permit', 'everything'),
      fails(/ISO 4217/, 'merchant', 'create', '--name', 'Wrong', '--float', '1', '--currency', 'ZZZ'),
      fails(/no merchant 999999/, 'merchant', 'suspend', '999999'),
      fails(/merchant id/, 'merchant', 'show', 'kiosk'),
      fails(/required option '--name/, 'merchant', 'create'),
    ]);
    assert.deepEqual(await json('merchant', 'list'), before);
  });
});

describe('scrip key', () => {
  test('create and revoke rotate a key with overlap', async () => {
    const { id, keyId, secret } = await json('merchant', 'create', '--name', 'Rotating');
    const second = await json('key', 'create', '--merchant', id);
    assert.deepEqual(Object.keys(second), ['keyId', 'secret']);
    await enter(second);
    await enter({ keyId, secret });
    assert.equal((await scrip('key', 'revoke', '--merchant', id, '--key', keyId)).status, 0);
    const keys = await json('key', 'list', '--merchant', id);
    assert.deepEqual(
      keys.map((key: { keyId: string; revokedAt: string | null }) => [key.keyId, key.revokedAt !== null]),
      [
        [keyId, true],
        [second.keyId, false],
      ],
    );
    assert.equal((await scrip('key', 'revoke', second.keyId)).status, 0);
    await Promise.all([
      fails(/no key key_none/, 'key', 'revoke', 'key_none'),
      fails(/no key/, 'key', 'revoke', '--merchant', String(Number(id) + 1), '--key', keyId),
    ]);
  });
});

describe('scrip float and product', () => {
  test('top up exactly, in each currency', async () => {
    const { id } = await json('merchant', 'create', '--name', 'Prepaid');
    await json('float', 'top-up', '--merchant', id, '--amount', '0.10');
    await json('float', 'top-up', '--merchant', id, '--amount', '0.20');
    await json('float', 'top-up', '--merchant', id, '--amount', '1.005', '--currency', 'KWD');
    assert.deepEqual(await json('float', 'show', '--merchant', id), [
      { currency: 'KWD', balance: 1.005 },
      { currency: 'USD', balance: 0.3 },
    ]);
    await Promise.all([
      fails(/JPY has 0 decimals/, 'float', 'top-up', '--merchant', id, '--amount', '0.5', '--currency', 'JPY'),
      fails(/no merchant 999999/, 'float', 'top-up', '--merchant', '999999', '--amount', '1'),
    ]);
  });

  test('make a product with its bounds, and take it off sale', async () => {
    const bounds = ['--min-value', '5', '--max-value', '50.5', '--max-quantity', '5000000', '--validity-days', '30'];
    const terms = ['--activation', 'on-activation', '--scope', 'issuer', '--currency', 'EUR'];
    const made = await json('product', 'create', '--code', 'GIFT', '--name', 'Gift card', ...terms, ...bounds);
    assert.equal(made.code, 'GIFT');
    assert.deepEqual([made.minValue, made.maxValue, made.maxQuantity, made.validityDays], [5, 50.5, 5_000_000, 30]);
    assert.deepEqual(
      [made.activation, made.scope, made.currency, made.onSale],
      ['on-activation', 'issuer', 'EUR', true],
    );
    await Promise.all([
      fails(/GIFT/, 'product', 'create', '--code', 'GIFT', '--name', 'Again'),
      fails(/5000000/, 'product', 'create', '--code', 'MORE', '--name', 'More', '--max-quantity', '5000001'),
    ]);
    assert.equal((await scrip('product', 'off-sale', 'GIFT')).status, 0);
    const codes = (await json('product', 'list')).map(({ code, onSale }: { code: string; onSale: boolean }) => [
      code,
      onSale,
    ]);
    assert.deepEqual(codes, [
      ['DEFAULT', true],
      ['GIFT', false],
    ]);
  });
});

describe('scrip batch', () => {
  test('lists, shows and cancels', async () => {
    const merchant = await json('merchant', 'create', '--name', 'Batches', '--float', '1000');
    const context = await enter(merchant);
    await makeVouchers(context, 'small', 2);
    const { batch } = await generate(context, { reference: 'large', quantity: 11, value: 10 });
    const listed = await json('batch', 'list', '--merchant', merchant.id);
    assert.deepEqual(listed[0], {
      transactionId: batch.transactionId,
      merchantId: merchant.id,
      reference: 'large',
      status: 'PROCESSING',
      quantity: 11,
      produced: 0,
    });
    assert.equal(listed.length, 2);
    assert.equal((await json('batch', 'show', batch.transactionId)).value, 10);
    assert.equal((await json('batch', 'cancel', batch.transactionId)).status, 'CANCELED');
    assert.deepEqual(await json('float', 'show', '--merchant', merchant.id), [{ currency: 'USD', balance: 940 }]);
    await Promise.all([
      fails(/COMPLETED/, 'batch', 'cancel', listed[1].transactionId),
      fails(/no batch/, 'batch', 'show', '00000000-0000-7000-8000-000000000000'),
      fails(/no transaction id/, 'batch', 'show', 'large'),
    ]);
  });
});

describe('scrip voucher', () => {
  let context: Context;
  let merchantId: string;
  before(async () => {
    const merchant = await json('merchant', 'create', '--name', 'Vouchers', '--float', '10000');
    merchantId = merchant.id;
    context = await enter(merchant);
  });

  test('show masks the code and shows no PIN', async () => {
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, 'shown', 1)) as [Made];
    await redeem(context, { code, pin, amount: 12, reference: 'shown-sale' });
    const { status, out } = await scrip('voucher', 'show', String(serialNumber));
    assert.equal(status, 0);
    assert.ok(!out.includes(code) && !new RegExp(`\\b${pin}\\b`).test(out));
    const shown = await json('voucher', 'show', String(serialNumber));
    assert.equal(shown.voucherCode, `${code.slice(0, 4)}****${code.slice(8)}`);
    assert.deepEqual(
      [shown.serialNumber, shown.state, shown.balance, shown.value, shown.merchantId, shown.batchReference],
      [Number(serialNumber), 'ACTIVE', 18, 30, merchantId, 'shown'],
    );
    assert.deepEqual(
      shown.entries.map(({ kind, amount }: { kind: string; amount: number }) => [kind, amount]),
      [
        ['REDEMPTION', 12],
        ['ACTIVATION', 30],
      ],
    );
    assert.ok(!JSON.stringify(shown).includes(code));
  });

  test('block refuses redemptions until unblock', async () => {
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, 'blocked', 1)) as [Made];
    const serial = String(serialNumber);
    assert.equal((await json('voucher', 'block', serial)).state, 'BLOCKED');
    await assert.rejects(redeem(context, { code, pin, amount: 1 }), { code: '43' });
    assert.equal((await json('voucher', 'unblock', serial)).state, 'ACTIVE');
    await redeem(context, { code, pin, amount: 1 });
  });

  test('unlock-pin ends a lock that no time ends', async () => {
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, 'locked', 1)) as [Made];
    const owner = await openOwner(testService.url);
    await owner.query(
      sql`update scrip.vouchers set wrong_pins = 15, pin_locked_until = 'infinity' where serial_number = ${serialNumber}`,
    );
    await owner.close();
    await assert.rejects(balance(context, { code, pin }), { code: '75' });
    assert.equal((await json('voucher', 'show', String(serialNumber))).pinLocked, 'until unlocked');
    const { wrongPins, pinLocked } = await json('voucher', 'unlock-pin', String(serialNumber));
    assert.deepEqual([wrongPins, pinLocked], [0, 'no']);
    await balance(context, { code, pin });
  });

  test('extend lets an expired voucher live again, and never shortens one', async () => {
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, 'expired', 1)) as [Made];
    const owner = await openOwner(testService.url);
    await owner.query(
      sql`update scrip.vouchers set expires_at = now() - interval '1 day' where serial_number = ${serialNumber}`,
    );
    await owner.close();
    await assert.rejects(redeem(context, { code, pin, amount: 1 }), { code: '54' });
    const serial = String(serialNumber);
    const extended = await json('voucher', 'extend', serial, '--expiry', '2099-02-28');
    assert.deepEqual([extended.state, extended.expiresAt], ['ACTIVE', '2099-02-28T23:59:59.999Z']);
    await redeem(context, { code, pin, amount: 1 });
    await Promise.all([
      fails(/can only be extended/, 'voucher', 'extend', serial, '--expiry', '2098-01-01'),
      fails(/--expiry takes a day/, 'voucher', 'extend', serial, '--expiry', '2099-02-30'),
      fails(/--expiry takes a day/, 'voucher', 'extend', serial, '--expiry', 'tomorrow'),
    ]);
  });

  test('replace moves everything to a new code, which the batch then holds', async () => {
    const [first, second] = (await makeVouchers(context, 'lost', 2)) as [Made, Made];
    await redeem(context, { code: first.code, pin: first.pin, amount: 5 });
    const { out, err } = await scrip('voucher', 'replace', String(first.serialNumber), '--json');
    const replacement = JSON.parse(out);
    assert.deepEqual([replacement.state, replacement.balance, replacement.value], ['ACTIVE', 25, 30]);
    const vouchers = await vouchersOf(context, 'lost');
    assert.deepEqual(
      vouchers.map(({ serialNumber }) => Number(serialNumber)),
      [Number(second.serialNumber), replacement.serialNumber],
    );
    const fresh = vouchers[1] as Made;
    assert.ok(!`${out}${err}`.includes(fresh.code));
    await redeem(context, { code: fresh.code, pin: fresh.pin, amount: 25 });
    await assert.rejects(redeem(context, { code: first.code, pin: first.pin, amount: 1 }), { code: '44' });
    assert.equal((await json('voucher', 'show', String(first.serialNumber))).state, 'REPLACED');
    await Promise.all([
      fails(/final/, 'voucher', 'replace', String(first.serialNumber)),
      fails(/final/, 'voucher', 'block', String(first.serialNumber)),
    ]);
  });

  test('knows no voucher of a batch that is not completed', async () => {
    const { batch } = await generate(context, { reference: 'unfinished', quantity: 2_001, value: 1 });
    await fillBatch(testService.service, batch.id, () => true);
    const owner = await openOwner(testService.url);
    const [made] = await owner.query<{ serial: string }>(
      sql`select max(serial_number)::text as serial from scrip.vouchers where batch_id = ${batch.id}`,
    );
    await owner.close();
    assert.equal((await json('batch', 'show', batch.transactionId)).produced, 2_000);
    await Promise.all([
      fails(/Invalid voucher/, 'voucher', 'show', made?.serial ?? ''),
      fails(/Invalid voucher/, 'voucher', 'block', made?.serial ?? ''),
      fails(/no serial number/, 'voucher', 'show', 'x1'),
    ]);
  });
});

describe('scrip reconcile', () => {
  test('ends with status 0 while everything agrees, and with 1 when anything differs', async () => {
    const good = await json('reconcile');
    assert.equal(good.ok, true);
    assert.ok(good.checks.every((check: { ok: boolean }) => check.ok));
    const owner = await openOwner(testService.url);
    try {
      await owner.query(sql`update scrip.accounts set balance_minor = balance_minor + 1 where kind = 'FLOAT'`);
      const { status, out, err } = await scrip('reconcile', '--json');
      assert.equal(status, 1);
      assert.equal(err, '');
      const bad = JSON.parse(out);
      assert.equal(bad.ok, false);
      assert.deepEqual(
        bad.checks.filter(({ ok }: { ok: boolean }) => !ok).map(({ name }: { name: string }) => name),
        ['float-balances'],
      );
      assert.equal((await scrip('reconcile')).status, 1);
    } finally {
      await owner.query(sql`update scrip.accounts set balance_minor = balance_minor - 1 where kind = 'FLOAT'`);
      await owner.close();
    }
  });
});
