import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { generate } from '../../src/batches/generate.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { DIALECTS, type Dialect, update } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { verify } from '../support/receiver.ts';
import { withWrongPin } from '../support/till.ts';
import { Hooked } from '../support/webhooks.ts';

const [a] = DIALECTS as [Dialect, Dialect];
const only = { redeemed: ['voucher.redeemed'], activated: ['voucher.activated'] } as const;

for (const dialect of DIALECTS) {
  test(`a redemption is announced once, with a masked code, by ${dialect.name}`, async (t) => {
    const hooked = await Hooked.open(t);
    const { till } = hooked;
    const { receiver, secret } = await hooked.add(t, only.redeemed);
    const voucher = await till.voucher();
    const { transactionId, timestamp } = (await till.done(dialect.redeem(voucher, 10.5, 'sale'))).data;
    await till.done(dialect.redeem(voucher, 10.5, 'sale'));
    await till.refused(dialect, '55', dialect.redeem(withWrongPin(voucher), 1, 'other'));
    await till.refused(dialect, '51', dialect.redeem(voucher, 1000, 'other'));
    await till.done(dialect.redeem(voucher, 1, 'second'));
    const [first, second, ...more] = await receiver.has(2);
    assert.ok(first && second);
    assert.deepEqual(more, []);
    assert.deepEqual(verify(first, secret), {
      type: 'voucher.redeemed',
      timestamp,
      data: {
        transactionId,
        transactionType: 'REDEMPTION',
        amount: 10.5,
        timestamp,
        reference: 'sale',
        voucherCode: `${voucher.code.slice(0, 4)}****${voucher.code.slice(-4)}`,
        serialNumber: String(voucher.serialNumber),
        refundStatus: null,
        note: null,
      },
    });
    assert.equal(second.body.data.reference, 'second');
    for (const { text } of [first, second]) {
      assert.equal(text.includes(voucher.code), false);
      assert.equal(text.includes(`"${voucher.pin}"`), false);
    }
  });
}

for (const dialect of DIALECTS) {
  test(`an activation is announced, but not one by generation, by ${dialect.name}`, async (t) => {
    const hooked = await Hooked.open(t);
    const { receiver, secret } = await hooked.add(t, only.activated);
    await hooked.till.voucher();
    const voucher = await hooked.till.voucher(null);
    const { data } = await hooked.till.done(dialect.activate(voucher, 'act'));
    const [delivery] = await receiver.has(1);
    assert.ok(delivery);
    const { type, data: event } = verify(delivery, secret) as { type: string; data: Record<string, unknown> };
    assert.equal(type, 'voucher.activated');
    assert.equal(event['transactionId'], data.transactionId);
    assert.equal(event['reference'], 'act');
    assert.equal(event['amount'], 5000);
    assert.equal(delivery.text.includes(voucher.code), false);
  });
}

for (const newAmount of [3, 0]) {
  test(`an update to ${newAmount} is announced with the data of its answer`, async (t) => {
    const hooked = await Hooked.open(t);
    const { till } = hooked;
    const { receiver, secret } = await hooked.add(t, ['redemption.updated']);
    const voucher = await till.voucher();
    await till.done(a.redeem(voucher, 5, 'sale'));
    const answer = await till.done(update('sale', newAmount));
    const [delivery] = await receiver.has(1);
    assert.ok(delivery);
    const { type, data } = verify(delivery, secret) as { type: string; data: unknown };
    assert.equal(type, 'redemption.updated');
    assert.deepEqual(data, answer.data);
  });
}

test('a complete batch is announced with its quantity and without its vouchers', async (t) => {
  const hooked = await Hooked.open(t);
  const { receiver, secret } = await hooked.add(t, ['voucher.batch.completed', 'voucher.batch.canceled']);
  const body = { reference: 'print', quantity: 3, value: 20 };
  const { data } = await hooked.till.done({ method: 'POST', path: '/api/v2/vouchers', body });
  const { vouchers, ...batch } = data;
  const [delivery] = await receiver.has(1);
  assert.ok(delivery);
  assert.deepEqual((verify(delivery, secret) as { data: unknown }).data, { ...batch, quantity: 3 });
  for (const { code, pin } of vouchers)
    assert.ok(!delivery.text.includes(code) && !delivery.text.includes(`"${pin}"`));
});

test('a canceled batch is announced', async (t) => {
  const hooked = await Hooked.open(t);
  const { service, merchant } = { service: hooked.service, merchant: hooked.till.merchant };
  const { receiver, secret } = await hooked.add(t);
  const { context } = await authenticate(service, merchant.authorization);
  const { batch } = await generate(context, { reference: 'large', quantity: 5_000, value: 1 });
  await cancelBatch(asOperator(service), batch.transactionId);
  const [delivery] = await receiver.has(1);
  assert.ok(delivery);
  const { type, data } = verify(delivery, secret) as { type: string; data: Record<string, unknown> };
  assert.equal(type, 'voucher.batch.canceled');
  assert.deepEqual([data['reference'], data['status'], data['quantity']], ['large', 'CANCELED', 5_000]);
});

test('a float that falls below its threshold is announced once', async (t) => {
  const hooked = await Hooked.open(t, { float: 1_000_000n });
  const { till, service } = hooked;
  const { receiver, secret } = await hooked.add(t, ['float.low']);
  const generateFor = (reference: string, value: number) =>
    till.done({ method: 'POST', path: '/api/v2/vouchers', body: { reference, quantity: 1, value } });
  await generateFor('to the threshold', 9_000);
  await generateFor('below it', 1);
  await generateFor('further', 1);
  const [first] = await receiver.has(1);
  assert.ok(first);
  const { type, data } = verify(first, secret) as { type: string; data: unknown };
  assert.deepEqual([type, data], ['float.low', { currency: 'USD', balance: 999, threshold: 1000 }]);

  await topUp(asOperator(service), { merchantId: till.merchant.id, currency: 'USD', amountMinor: 590_200n });
  const [one, two] = await till.vouchers(2, null);
  assert.ok(one && two);
  await till.done(a.activate(one, 'first'));
  await till.refused(a, '50', a.activate(two, 'second'));
  await generateFor('again', 1_500);
  const [, again, ...more] = await receiver.has(2);
  assert.ok(again);
  assert.deepEqual(more, []);
  assert.deepEqual(again.body.data, { currency: 'USD', balance: 400, threshold: 690 });
});

test('each endpoint gets the events that it subscribes to, under the same ID as the others', async (t) => {
  const hooked = await Hooked.open(t);
  const all = await hooked.add(t);
  const redeemed = await hooked.add(t, only.redeemed);
  const voucher = await hooked.till.voucher();
  await hooked.till.done(a.redeem(voucher, 1, 'sale'));
  const [batch, sale] = await all.receiver.has(2);
  const [same] = await redeemed.receiver.has(1);
  assert.deepEqual([batch?.body.type, sale?.body.type].sort(), [
    'voucher.batch.completed',
    'voucher.redeemed',
  ]);
  const delivery = all.receiver.received.find(({ body }) => body.type === 'voucher.redeemed');
  assert.equal(delivery?.headers['webhook-id'], same?.headers['webhook-id']);
  assert.equal(redeemed.receiver.received.length, 1);
  assert.throws(() => same && verify(same, all.secret));
});
