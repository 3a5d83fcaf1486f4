import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAttempts, listDeliveries } from '../src/webhooks/deliveries.ts';
import { removeEndpoint } from '../src/webhooks/endpoints.ts';
import { maintain } from '../src/webhooks/maintain.ts';
import { DIALECTS } from './dialects.ts';
import { asOperator } from './harness.ts';
import { Hooked } from './webhooks.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Ninety days after the end of the month in which a time lies: deliveries are dropped month by month. */
function endOfKeeping(time: Date): number {
  return Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1) + 90 * DAY;
}

// In a file of its own: ids never go back in time within a process, and other tests move the clock on by
// days.
test('attempts and deliveries are dropped ninety days after the end of their month, and not before', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id } = await hooked.add(t, ['voucher.redeemed']);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  const end = endOfKeeping(clock.now());
  const [delivered] = await hooked.until(id, ([d]) => d?.state === 'DELIVERED');
  clock.set(new Date(end - HOUR));
  await maintain(hooked.service);
  assert.equal((await listAttempts(db, id, delivered?.eventId ?? '')).length, 1);
  clock.set(new Date(end + HOUR));
  await maintain(hooked.service);
  assert.equal((await listAttempts(db, id, delivered?.eventId ?? '')).length, 0);
  assert.deepEqual(await listDeliveries(db, id, null, 10), []);
});

test('what was pending for an endpoint that was removed is ended, and dropped with its month', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id, receiver } = await hooked.add(t, ['voucher.redeemed']);
  receiver.answer(500);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  const end = endOfKeeping(clock.now());
  await hooked.until(id, ([d]) => !!d?.lastAttempt);
  await removeEndpoint(asOperator(hooked.service), id);
  const states = async () => (await listDeliveries(db, id, null, 10)).map(({ state }) => state);
  assert.deepEqual(await states(), ['PENDING']);
  await maintain(hooked.service);
  assert.deepEqual(await states(), ['FAILED']);
  clock.set(new Date(end - HOUR));
  await maintain(hooked.service);
  assert.deepEqual(await states(), ['FAILED']);
  clock.set(new Date(end + HOUR));
  await maintain(hooked.service);
  assert.deepEqual(await states(), []);
});

test('a delivery that is pending keeps its month, however old it is', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id, receiver } = await hooked.add(t, ['voucher.redeemed']);
  receiver.answer(500);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  await hooked.until(id, ([d]) => !!d?.lastAttempt);
  await hooked.stop();
  clock.set(new Date(endOfKeeping(clock.now()) + HOUR));
  await maintain(hooked.service);
  assert.equal((await listDeliveries(db, id, 'PENDING', 10)).length, 1);
});
