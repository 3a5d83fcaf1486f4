import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { EVENTS } from '../../src/webhooks/outbox.ts';
import { assertDescribed } from '../support/described.ts';
import { DIALECTS, update } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { Hooked } from '../support/webhooks.ts';

/** The events that tests of their subject compare with their schemas, since they need other means. */
const ELSEWHERE =
  /^(settlement|api-key|webhook|limit|day)\.|^voucher\.(blocked|unblocked|expired|canceled|replaced)$/;

test('every event has the fields of its OpenAPI schema', async (t) => {
  const hooked = await Hooked.open(t, { float: 1_000_000n });
  const { till, service } = hooked;
  const { receiver } = await hooked.add(t);
  const [a] = DIALECTS;
  assert.ok(a);
  const voucher = await till.voucher();
  await till.done(a.redeem(voucher, 5, 'sale'));
  await till.done(update('sale', 3));
  await till.done(a.redeem(voucher, 5, 'another sale'));
  await till.done(update('another sale', 0));
  await till.done(a.activate(await till.voucher(null), 'activation'));
  await till.done(a.generate('dear', 1, 4_000));
  const { data } = await till.done(a.generate('large', 20, 1));
  await cancelBatch(asOperator(service), data.transactionId);
  const types = () => new Set(receiver.received.map(({ body }) => body.type));
  const awaited = EVENTS.filter((type) => !ELSEWHERE.test(type));
  for (let count = 1; awaited.some((type) => !types().has(type)); count++) await receiver.has(count);
  for (const { body } of receiver.received) assertDescribed(body);
});
