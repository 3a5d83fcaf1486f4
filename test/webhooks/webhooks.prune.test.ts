import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../../src/context.ts';
import { plainArray, sql } from '../../src/db/sql.ts';
import { newId } from '../../src/ledger/id.ts';
import { listAttempts, listDeliveries } from '../../src/webhooks/deliveries.ts';
import { findEndpoint, webhooks } from '../../src/webhooks/endpoints.ts';
import { dropDeliveries, endAbandoned } from '../../src/webhooks/record.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { Hooked } from '../support/webhooks.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function maintain(service: Service): Promise<void> {
  await dropDeliveries(service);
  await endAbandoned(service);
}

/** Ninety days after the end of the month of a time: deliveries are dropped month by month. */
function endOfKeeping(time: Date): number {
  return Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1) + 90 * DAY;
}

/** An endpoint that failed once to take an event, and the end of its keeping. */
async function failing(t: TestContext, hooked: Hooked) {
  const { id, receiver } = await hooked.add(t, ['voucher.redeemed']);
  receiver.answer(500);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, 'sale'));
  const end = endOfKeeping(hooked.till.testService.clock.now());
  await hooked.until(id, ([d]) => !!d?.lastAttempt);
  return { id, end };
}

test('attempts and deliveries are dropped ninety days after the end of their month', async (t) => {
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

test('a pending delivery of a removed endpoint fails, and is dropped with its month', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id, end } = await failing(t, hooked);
  await webhooks.remove.run(asOperator(hooked.service), { id: String(id) });
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

test('a pending delivery keeps its month, however old it is', async (t) => {
  const hooked = await Hooked.open(t);
  const { clock } = hooked.till.testService;
  const { db } = hooked.service;
  const { id, end } = await failing(t, hooked);
  await hooked.stop();
  clock.set(new Date(end + HOUR));
  await maintain(hooked.service);
  assert.equal((await listDeliveries(db, id, 'PENDING', 10)).length, 1);
});

test('an endpoint with a long queue is disabled without a change of the queue or a delay', async (t) => {
  const hooked = await Hooked.open(t);
  const { service } = hooked;
  const { db } = service;
  const queue = (endpointId: number, quantity: number) => {
    const ids = Array.from({ length: quantity }, () => newId(service.clock()));
    return db.query(sql`
insert into webhook_deliveries (endpoint_id, event_id, type, data, occurred_at, due_at)
select ${endpointId}, event_id, 'float.low', '{}', ${service.clock()}, ${service.clock()}
from unnest(${plainArray(ids)}::uuid[]) as e (event_id)`);
  };
  const count = async (endpointId: number, state: string) => {
    const [row] = await db.query<{ count: number }>(sql`
select count(*)::int as count from webhook_deliveries
where endpoint_id = ${endpointId} and state::text = ${state}`);
    return row?.count ?? 0;
  };
  const dead = await hooked.add(t, ['voucher.redeemed']);
  const healthy = await hooked.add(t, ['voucher.activated']);
  dead.receiver.answer(410);
  // More than one statement of the maintenance can end.
  await queue(dead.id, 5_500);
  while (!(await findEndpoint(db, dead.id))?.disabledAt) await sleep(20);
  const dialect = DIALECTS[0] ?? assert.fail();
  await hooked.till.done(dialect.activate(await hooked.till.voucher(null), 'act'));
  await hooked.until(healthy.id, ([d]) => d?.state === 'DELIVERED');
  // Once the sender has stopped, its work on the endpoint is done.
  await hooked.stop();
  assert.ok((await count(dead.id, 'PENDING')) > 5_000);
  await maintain(service);
  assert.deepEqual([await count(dead.id, 'PENDING'), await count(dead.id, 'FAILED')], [0, 5_500]);
});

test('the pending deliveries of a busy endpoint are counted up to a hundred', async (t) => {
  const hooked = await Hooked.open(t);
  const { service } = hooked;
  const { id } = await hooked.add(t, ['voucher.redeemed']);
  await hooked.stop();
  const ids = Array.from({ length: 250 }, () => newId(service.clock()));
  await service.db.query(sql`
insert into webhook_deliveries (endpoint_id, event_id, type, data, occurred_at, due_at)
select ${id}, event_id, 'float.low', '{}', ${service.clock()}, ${service.clock()}
from unnest(${plainArray(ids)}::uuid[]) as e (event_id)`);
  assert.equal((await findEndpoint(service.db, id))?.pending, 100);
  await webhooks.remove.run(asOperator(service), { id: String(id) });
});
