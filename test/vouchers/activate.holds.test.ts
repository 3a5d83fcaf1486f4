import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { readVouchersOf } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { holdFloat, releaseHold, resolveOldHolds } from '../../src/ledger/holds.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { openLedger } from '../support/books.ts';
import { differing } from '../support/differing.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';

/** Activations from a float over shards: the money is held before the voucher is activated. */

const COUNT = 30;

async function open(t: TestContext, floatMinor: bigint) {
  const ledger = await openLedger(t, new Date().toISOString(), { buckets: 2 });
  const shop = await ledger.merchant(floatMinor);
  const vouchers: { readonly serialNumber: bigint }[] = [];
  for (let at = 0; at < COUNT; at += 10) {
    const { batch } = await generate(shop, { reference: `batch ${at}`, quantity: 10 });
    vouchers.push(...((await readVouchersOf(shop.service, batch.transactionId, 10)) ?? []));
  }
  return { ledger, shop, vouchers };
}

const give = (shop: Context, { serialNumber }: { readonly serialNumber: bigint }, reference: string) =>
  activate(shop, { voucher: { serialNumber: Number(serialNumber) }, value: 1, reference });

test('activations of one float at the same time share a hold, and each is paid once', async (t) => {
  const { ledger, shop, vouchers } = await open(t, 2_000n);
  const answers = await Promise.allSettled(
    vouchers.flatMap((voucher, index) => [
      give(shop, voucher, `a${index}`),
      give(shop, voucher, `a${index}`),
    ]),
  );
  const done = answers.filter(({ status }) => status === 'fulfilled');
  const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason.code] : []));
  assert.deepEqual([...new Set(refused)], ['50']);
  assert.ok(done.length >= 20, `${done.length}`);
  const [found] = await ledger.sql<Record<string, bigint>>(`
    select (select balance_minor from scrip.floats where merchant_id = ${shop.merchant.id}) as left,
      (select count(*) from scrip.journal where kind = 'ACTIVATION' and merchant_id > 0) as booked,
      (select count(*) from scrip.float_holds where release_id is null) as held,
      (select count(*) from scrip.float_holds where ended_at is null) as open,
      (select count(*) from scrip.journal where kind = 'HOLD') as entries`);
  assert.deepEqual(
    [found?.['left'], found?.['booked'], found?.['held'], found?.['open']],
    [0n, 20n, 20n, 0n],
  );
  assert.ok((found?.['entries'] ?? 0n) < 20n, `${found?.['entries']} entries`);
  assert.deepEqual(await differing(shop.service), []);
});

test('a hold under an id takes the money once, and its amount is in the transit account', async (t) => {
  const { ledger, shop, vouchers } = await open(t, 1_000n);
  const [voucher] = vouchers as [(typeof vouchers)[number]];
  const [id, another] = ['01920000-0000-7000-8000-000000000001', '01920000-0000-7000-8000-000000000002'];
  const { serialNumber } = voucher;
  const bucket = shop.service.buckets.ofSerial(serialNumber);
  const hold = { id, merchantId: shop.merchant.id, currency: 'USD', amountMinor: 400n };
  const wanted = { ...hold, bucket, serialNumber };
  const taken = await Promise.all([wanted, wanted].map((each) => holdFloat(shop.service, each)));
  assert.deepEqual(taken, [true, true]);
  const greedy = { ...wanted, id: another, amountMinor: 1_001n };
  assert.equal(await holdFloat(shop.service, greedy), false);
  const [float] = await ledger.sql<{ balance: bigint }>(
    `select balance_minor as balance from scrip.floats where merchant_id = ${shop.merchant.id}`,
  );
  assert.equal(float?.balance, 600n);
});

test('money that a crash left on hold is back after five minutes, and not before', async (t) => {
  const { ledger, shop, vouchers } = await open(t, 1_000n);
  const { service, merchant } = shop;
  const [{ serialNumber }] = vouchers as [(typeof vouchers)[number]];
  const id = '01920000-0000-7000-8000-000000000001';
  const bucket = service.buckets.ofSerial(serialNumber);
  const hold = { id, merchantId: merchant.id, currency: 'USD', amountMinor: 400n, bucket, serialNumber };
  assert.ok(await holdFloat(service, hold));
  const floatAfter = async (seconds: number) => {
    await ledger.at(new Date(service.clock().getTime() + seconds * 1_000).toISOString());
    await resolveOldHolds(service);
    const [float] = await ledger.sql<{ balance: bigint }>(
      `select balance_minor as balance from scrip.floats where merchant_id = ${merchant.id}`,
    );
    return float?.balance;
  };
  assert.equal(await floatAfter(299), 600n);
  assert.equal(await floatAfter(2), 1_000n);
  assert.deepEqual(await differing(service), []);
});

test('activations that wait for a float take no connections from other work', async (t) => {
  const { ledger, shop, vouchers } = await open(t, 10_000n);
  const { db } = shop.service;
  const owner = await ownerOf(t, ledger.started.url);
  await owner.query(sql`begin`);
  await owner.query(sql`select from scrip.floats for update`);
  const waiting = vouchers.map((voucher, index) => give(shop, voucher, `a${index}`));
  await waitForLocks(ledger.started.url, 1);
  // More than there are connections: each is answered although the float stays locked.
  for (let count = 0; count < 20; count++) await db.query(sql`select 1`);
  await db.hot({ name: 'one', text: 'select 1' }, []);
  await owner.query(sql`commit`);
  assert.equal((await Promise.all(waiting)).length, COUNT);
});

test('an activation waits for money that a declined one holds, and not for money that is spent', async (t) => {
  const { shop, vouchers } = await open(t, 100n);
  const [held, first, second] = vouchers as [
    (typeof vouchers)[number],
    (typeof vouchers)[number],
    (typeof vouchers)[number],
  ];
  const hold = {
    id: '01920000-0000-7000-8000-000000000001',
    merchantId: shop.merchant.id,
    currency: 'USD',
    amountMinor: 100n,
    bucket: shop.service.buckets.ofSerial(held.serialNumber),
    serialNumber: held.serialNumber,
  };
  assert.ok(await holdFloat(shop.service, hold));
  const waiting = give(shop, first, 'a1');
  await releaseHold(shop.service, hold);
  assert.equal((await waiting).transaction.reference, 'a1');
  await assert.rejects(give(shop, second, 'a2'), { code: '50' });
  assert.deepEqual(await differing(shop.service), []);
});

test('an activation without a reference is paid like any other', async (t) => {
  const { shop, vouchers } = await open(t, 100n);
  const [first, second] = vouchers.map(({ serialNumber }) => ({ serialNumber: Number(serialNumber) }));
  assert.ok(first && second);
  await activate(shop, { voucher: first, value: 1 });
  await assert.rejects(activate(shop, { voucher: second, value: 1 }), { code: '50' });
  assert.deepEqual(await differing(shop.service), []);
});

test('two activations that compete for the last money: one is booked, also if the other is declined', async (t) => {
  const { shop, vouchers } = await open(t, 1_000n);
  const [sold] = vouchers as [(typeof vouchers)[number]];
  await give(shop, sold, 'sold');
  for (let turn = 1; turn < 9; turn++) {
    const voucher = vouchers[turn] as (typeof vouchers)[number];
    const answers = await Promise.allSettled([
      ...Array.from({ length: 3 }, (_, copy) => give(shop, sold, `again ${turn} ${copy}`)),
      give(shop, voucher, `turn ${turn}`),
      give(shop, voucher, `other ${turn}`),
    ]);
    const codes = answers.map((answer) => (answer.status === 'fulfilled' ? '00' : answer.reason.code));
    assert.deepEqual(codes.slice(0, 3), ['41', '41', '41']);
    assert.deepEqual(codes.slice(3).toSorted(), ['00', '41']);
  }
});
