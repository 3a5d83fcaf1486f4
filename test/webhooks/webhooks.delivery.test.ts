import assert from 'node:assert/strict';
import { createServer as createTcpServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readVouchersOf } from '../../src/batches/export.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { CLAIM_DELIVERIES, startDelivery } from '../../src/webhooks/deliver.ts';
import { listAttempts, listDeliveries, resend } from '../../src/webhooks/deliveries.ts';
import { findEndpoint, webhooks } from '../../src/webhooks/endpoints.ts';
import { endAbandoned } from '../../src/webhooks/record.ts';
import { createSender } from '../../src/webhooks/send.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { verify } from '../support/receiver.ts';
import { openWay } from '../support/way.ts';
import { Hooked } from '../support/webhooks.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const dialect = DIALECTS[0] ?? assert.fail();

/** A merchant with one endpoint for redemptions, and a voucher to redeem from. */
async function open(t: TestContext, timeoutMs?: number) {
  const hooked = await Hooked.open(t, {}, timeoutMs);
  const endpoint = await hooked.add(t, ['voucher.redeemed']);
  const voucher = await hooked.till.voucher();
  let sales = 0;
  const sell = () => hooked.till.done(dialect.redeem(voucher, 1, `sale-${++sales}`));
  const attempted = async (count: number) => {
    const isRecorded = ([newest]: readonly { attempts: number; lastAttempt: unknown }[]) =>
      (newest?.attempts ?? 0) >= count && !!newest?.lastAttempt;
    const [delivery] = await hooked.until(endpoint.id, isRecorded);
    assert.ok(delivery);
    return delivery;
  };
  return { hooked, ...endpoint, sell, attempted, clock: hooked.till.testService.clock };
}

for (const [status, error] of [
  [500, 'answered 500'],
  [404, 'answered 404'],
  [302, 'redirects are not followed'],
] as const) {
  test(`a delivery answered with ${status} is retried with the same ID and body`, async (t) => {
    const { hooked, receiver, secret, sell, attempted, clock, id } = await open(t);
    clock.set(new Date());
    receiver.answer(status, { location: `${receiver.url}/elsewhere` });
    await sell();
    const { state, lastAttempt, dueAt } = await attempted(1);
    assert.deepEqual([state, lastAttempt?.status, lastAttempt?.error], ['PENDING', status, error]);
    const wait = (dueAt?.getTime() ?? 0) - clock.now().getTime();
    assert.ok(wait >= 5_000 && wait <= 6_000, `the retry is due after ${wait} ms`);
    receiver.answer(204);
    clock.advance(6_001);
    await hooked.until(id, ([delivery]) => delivery?.state === 'DELIVERED');
    const [first, second, ...more] = receiver.received;
    assert.ok(first && second);
    assert.deepEqual(more, []);
    assert.equal(first.headers['webhook-id'], second.headers['webhook-id']);
    assert.equal(first.text, second.text);
    assert.notEqual(first.headers['webhook-timestamp'], second.headers['webhook-timestamp']);
    // The endpoint is updated after the delivery.
    while ((await findEndpoint(hooked.service.db, id))?.failingSince) await sleep(20);
    verifyAt(first, secret);
  });
}

/** Verifies a delivery. The test has set its clock to that of the machine, which the verifier uses. */
function verifyAt(received: Parameters<typeof verify>[0], secret: string): void {
  assert.ok(verify(received, secret));
}

test('a receiver is not called before its Retry-After', async (t) => {
  const { receiver, sell, attempted, clock } = await open(t);
  clock.set(new Date());
  receiver.answer(429, { 'retry-after': '1800' });
  await sell();
  const { dueAt } = await attempted(1);
  assert.equal((dueAt?.getTime() ?? 0) - clock.now().getTime(), 1_800_000);
});

test('an answer of 410 disables the endpoint, until an operator enables it again', async (t) => {
  const { hooked, receiver, sell, id } = await open(t);
  const { db } = hooked.service;
  receiver.answer(410);
  await sell();
  await hooked.until(id, ([delivery]) => delivery?.state === 'FAILED');
  while (!(await findEndpoint(db, id))?.disabledAt) await sleep(20);
  assert.equal((await findEndpoint(db, id))?.disabledReason, 'it answered 410 Gone');
  await sell();
  assert.equal((await listDeliveries(db, id, null, 10)).length, 1);
  receiver.answer(200);
  await webhooks.enable.run(asOperator(hooked.service), { id: String(id) });
  await sell();
  const [newest] = await hooked.until(id, (all) => all.length === 2 && all[0]?.state === 'DELIVERED');
  assert.equal(newest?.attempts, 1);
});

test('a delivery fails after eight attempts, and can then be sent again by an operator', async (t) => {
  const { hooked, receiver, sell, attempted, clock, id } = await open(t);
  receiver.answer(503);
  await sell();
  for (let tries = 1; tries <= 8; tries++) {
    await receiver.has(tries);
    await attempted(tries);
    await hooked.until(id, ([d]) =>
      tries === 8
        ? d?.state === 'FAILED'
        : (d?.dueAt?.getTime() ?? 0) > clock.now().getTime() + 4_000 && !!d?.lastAttempt,
    );
    clock.advance(12.5 * HOUR);
  }
  const [failed] = await listDeliveries(hooked.service.db, id, 'FAILED', 10);
  assert.equal(failed?.attempts, 8);
  receiver.answer(200);
  assert.equal(await resend(asOperator(hooked.service), id, { failedSince: new Date(0) }), 1);
  await hooked.until(id, ([delivery]) => delivery?.state === 'DELIVERED');
  const attempts = await listAttempts(hooked.service.db, id, failed?.eventId ?? '');
  assert.deepEqual(
    attempts.map(({ number, status }) => [number, status]),
    [...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => [n, 503]), [9, 200]],
  );
  assert.equal(await resend(asOperator(hooked.service), id, { failedSince: new Date(0) }), 0);
  assert.equal(await resend(asOperator(hooked.service), id, { eventId: failed?.eventId ?? '' }), 1);
  await receiver.has(10);
});

test('an endpoint that has failed for five days is disabled', async (t) => {
  const { hooked, receiver, sell, attempted, clock, id } = await open(t);
  receiver.answer(500);
  await sell();
  await attempted(1);
  clock.advance(5 * DAY - HOUR);
  await sell();
  await hooked.until(
    id,
    (all) => all.length === 2 && all.every(({ attempts, lastAttempt }) => attempts > 0 && lastAttempt),
  );
  assert.equal((await findEndpoint(hooked.service.db, id))?.disabledAt, null);
  clock.advance(2 * HOUR);
  await sell();
  while (!(await findEndpoint(hooked.service.db, id))?.disabledAt) await sleep(20);
  assert.equal((await findEndpoint(hooked.service.db, id))?.disabledReason, 'it failed for five days');
  // One row disables it. The maintenance ends pending deliveries, except for those that are being sent.
  await hooked.stop();
  await endAbandoned(hooked.service);
  const states = (await listDeliveries(hooked.service.db, id, null, 10)).map(({ state }) => state);
  // A retry of the first two may have disabled it before the third sale, which is then not announced.
  assert.ok(states.length >= 2 && states.every((state) => state === 'FAILED'), `${states}`);
});

test('no answer, a closed connection and a closed port are failures; a huge answer is not', async (t) => {
  const { hooked, receiver, sell, id } = await open(t, 300);
  const last = (error: string) => hooked.until(id, ([d]) => d?.lastAttempt?.error === error);
  receiver.behave = () => {};
  await sell();
  await last('no answer in time');
  receiver.behave = (response) => response.destroy();
  await sell();
  await last('connection closed without an answer');
  receiver.behave = (response) => {
    response.writeHead(200);
    response.write('x'.repeat(1_000_000));
    const timer = setInterval(() => response.write('x'.repeat(1_000_000)), 1);
    response.on('close', () => clearInterval(timer));
  };
  await sell();
  await hooked.until(id, ([d]) => d?.state === 'DELIVERED');
  await receiver.stop();
  await sell();
  await last('connection refused');
});

test('an answer that is not HTTP is a failure', async (t) => {
  const hooked = await Hooked.open(t);
  const { id, receiver } = await hooked.add(t, ['voucher.redeemed']);
  const { port } = new URL(receiver.url);
  await receiver.stop();
  const server = createTcpServer((socket) => socket.on('error', () => {}).end('220 mail.example ESMTP\r\n'));
  await new Promise<void>((resolve) => server.listen(Number(port), '127.0.0.1', resolve));
  t.after(() => server.close());
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  const [delivery] = await hooked.until(id, ([d]) => !!d?.lastAttempt);
  assert.equal(delivery?.lastAttempt?.status, null);
  assert.equal(delivery.state, 'PENDING');
});

test('the old and the new secret sign for a day after a rotation, and then only the new one', async (t) => {
  const { hooked, receiver, secret, sell, clock, id } = await open(t);
  const rotated = await webhooks.rotate.run(asOperator(hooked.service), { id: String(id) });
  assert.ok(rotated.secret);
  assert.match(rotated.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  await sell();
  const [during] = await receiver.has(1);
  assert.ok(during && verify(during, secret) && verify(during, rotated.secret));
  assert.equal(String(during.headers['webhook-signature']).split(' ').length, 2);
  clock.advance(DAY + 1_000);
  await sell();
  const [, after] = await receiver.has(2);
  assert.ok(after);
  assert.equal(String(after.headers['webhook-signature']).split(' ').length, 1);
});

test('after a second rotation within a day, the last two secrets sign', async (t) => {
  const { hooked, receiver, secret, sell, id } = await open(t);
  const rotate = () => webhooks.rotate.run(asOperator(hooked.service), { id: String(id) });
  const [first, second] = [await rotate(), await rotate()];
  await sell();
  const [sent] = await receiver.has(1);
  assert.ok(sent && first.secret && second.secret);
  assert.ok(verify(sent, first.secret) && verify(sent, second.secret));
  assert.throws(() => verify(sent, secret), /No matching signature/);
});

test('a removed endpoint gets no more deliveries', async (t) => {
  const { hooked, receiver, sell, clock, id } = await open(t);
  receiver.answer(500);
  await sell();
  await hooked.until(id, ([d]) => !!d?.lastAttempt);
  await webhooks.remove.run(asOperator(hooked.service), { id: String(id) });
  await assert.rejects(
    webhooks.remove.run(asOperator(hooked.service), { id: String(id) }),
    /there is no endpoint/,
  );
  clock.advance(HOUR);
  await sell();
  const other = await hooked.add(t);
  await sell();
  await other.receiver.has(1);
  assert.equal(receiver.received.length, 1);
});

test('an endpoint that never answers does not delay another one', async (t) => {
  const { hooked, receiver, sell } = await open(t, 60_000);
  receiver.behave = () => {};
  const other = await hooked.add(t, ['voucher.redeemed']);
  for (let sale = 0; sale < 5; sale++) await sell();
  await other.receiver.has(5);
  await receiver.has(5);
  assert.equal(receiver.received.length, 5);
});

test('two senders share the work, and send nothing twice', async (t) => {
  const { hooked, receiver, sell, id } = await open(t);
  await hooked.stop();
  for (let sale = 0; sale < 20; sale++) await sell();
  hooked.start();
  const sender = createSender({ allowPrivate: true, clock: hooked.service.clock });
  const other = startDelivery(hooked.service, sender, readVouchersOf);
  for (let sale = 0; sale < 5; sale++) await sell();
  const deliveries = await hooked.until(
    id,
    (all) => all.length === 25 && all.every(({ state }) => state === 'DELIVERED'),
  );
  await other.stop();
  assert.ok(deliveries.every(({ attempts }) => attempts === 1));
  assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 25);
  assert.equal(receiver.received.length, 25);
});

test('a sender goes on when its database is back', async (t) => {
  const { hooked, receiver, sell, id } = await open(t);
  await hooked.stop();
  const way = await openWay(hooked.till.testService.url);
  t.after(way.close);
  const db = openDatabase(way.url, 'scrip-test');
  const sender = createSender({ allowPrivate: true, clock: hooked.service.clock });
  const delivery = startDelivery({ ...hooked.service, db }, sender, readVouchersOf);
  t.after(async () => {
    await delivery.stop();
    await db.close();
  });
  await sell();
  await receiver.has(1);
  // The database goes away before the answer. The result is recorded once it is back.
  receiver.behave = (response) => {
    way.set('closed');
    response.end();
  };
  await sell();
  await receiver.has(2);
  receiver.answer(200);
  await sell();
  await sleep(300);
  way.set('open');
  await receiver.has(3);
  await hooked.until(id, (all) => all.length === 3 && all.every(({ state }) => state === 'DELIVERED'));
});

test('senders that die before they send use no attempt up', async (t) => {
  const { hooked, receiver, sell, clock, id } = await open(t);
  await hooked.stop();
  await sell();
  const { db, buckets } = hooked.service;
  // Each claims the delivery, and does not send it.
  for (let dead = 0; dead < 8; dead++) {
    const now = clock.now();
    const leaseUntil = new Date(now.getTime() + 45_000);
    const values = ['{}', '{}', 64, 2, 128, 200, now, leaseUntil];
    const claims = buckets.all.map((bucket) => db.hot(CLAIM_DELIVERIES, [bucket, 0, ...values], bucket));
    assert.equal((await Promise.all(claims)).flat().length, buckets.all.length + 1);
    clock.advance(46_000);
  }
  clock.advance(-6_000);
  receiver.answer(500);
  hooked.start();
  assert.equal(receiver.received.length, 0);
  clock.advance(7_000);
  await receiver.has(1);
  await hooked.until(id, ([d]) => d?.state === 'PENDING' && d.lastAttempt !== null);
  const [delivery] = await listDeliveries(db, id, null, 1);
  const attempts = await listAttempts(db, id, delivery?.eventId ?? '');
  assert.deepEqual(
    attempts.map(({ number, status }) => [number, status]),
    [[1, 500]],
  );
  receiver.answer(200);
  clock.advance(7_000);
  await receiver.has(2);
  await hooked.until(id, ([d]) => d?.state === 'DELIVERED' && d.attempts === 2);
});
