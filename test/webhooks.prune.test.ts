import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAttempts, listDeliveries } from '../src/webhooks/deliveries.ts';
import { removeEndpoint } from '../src/webhooks/endpoints.ts';
import { prune } from '../src/webhooks/prune.ts';
import { DIALECTS } from './dialects.ts';
import { asOperator } from './harness.ts';
import { Hooked } from './webhooks.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

// In a file of its own: ids never go back in time within a process, and other tests move the clock on by days.
test('attempts and deliveries are forgotten after ninety days, and not before', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id } = await hooked.add(t, ['voucher.redeemed']);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  const [delivered] = await hooked.until(id, ([d]) => d?.state === 'DELIVERED');
  clock.advance(90 * DAY - HOUR);
  await prune(hooked.service);
  assert.equal((await listAttempts(db, id, delivered?.eventId ?? '')).length, 1);
  clock.advance(2 * HOUR);
  await prune(hooked.service);
  assert.equal((await listAttempts(db, id, delivered?.eventId ?? '')).length, 0);
  assert.deepEqual(await listDeliveries(db, id, null, 10), []);
});

test('what still waited for an endpoint that was removed is forgotten too, ninety days after its end', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id, receiver } = await hooked.add(t, ['voucher.redeemed']);
  receiver.answer(500);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  await hooked.until(id, ([d]) => !!d?.lastAttempt);
  clock.advance(DAY);
  await removeEndpoint(asOperator(hooked.service), id);
  const waiting = async () => (await listDeliveries(db, id, 'PENDING', 10)).length;
  clock.advance(90 * DAY - HOUR);
  await prune(hooked.service);
  assert.equal(await waiting(), 1);
  clock.advance(2 * HOUR);
  await prune(hooked.service);
  assert.equal(await waiting(), 0);
});
