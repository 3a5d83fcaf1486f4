import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { newId } from '../../src/ledger/id.ts';
import { DAY_MS } from '../../src/time.ts';
import { deliveries } from '../../src/webhooks/deliveries.ts';
import { webhooks } from '../../src/webhooks/endpoints.ts';
import { listEvents } from '../../src/webhooks/pull.ts';
import { dropDeliveries } from '../../src/webhooks/record.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';
import { ofFile } from '../support/scope.ts';
import { Hooked } from '../support/webhooks.ts';

const scope = ofFile();
const [dialect] = DIALECTS;
let hooked: Hooked;
let merchantId: string;

const caller = () => asOperator(hooked.service);
const read = (input: { after?: string; endpoint?: string; limit?: number } = {}) =>
  listEvents.run(caller(), { merchantId, ...input });
const redeem = async (reference: string) =>
  hooked.till.done(dialect.redeem(await hooked.till.voucher(), 1, reference));
const add = async () => (await webhooks.add.run(caller(), { merchantId, pull: true })).id;
/** The references of the redemptions among some events. */
const references = ({ items }: Awaited<ReturnType<typeof read>>) =>
  items.flatMap(({ type, data }) =>
    type === 'voucher.redeemed' ? [(data as { reference: string }).reference] : [],
  );

before(async () => {
  hooked = await Hooked.open(scope);
  merchantId = String(hooked.till.merchant.id);
});

describe('a merchant that reads its events', () => {
  test('is told to add a pull endpoint, which has no URL and sends nothing', async () => {
    await assert.rejects(read(), {
      code: 'invalid',
      message: /: add a webhook endpoint with `pull`$/,
    });
    for (const input of [{}, { url: 'https://example.com/hook', pull: true }])
      await assert.rejects(webhooks.add.run(caller(), { merchantId, ...input }), { code: 'invalid' });
    await assert.rejects(webhooks.add.run(caller(), { merchantId, pull: true, full: true }), {
      code: 'invalid',
    });
    const id = await add();
    assert.equal((await webhooks.show.run(caller(), { id })).url, null);
    await assert.rejects(deliveries.test.run(caller(), { id }), { code: 'conflict' });
    await assert.rejects(deliveries.resend.run(caller(), { id, failedSince: '2026-01-01' }), {
      code: 'conflict',
    });
    assert.equal((await read()).nextCursor, `${id}-0`);
  });

  test('gets the bodies and the ids of deliveries, page by page, and again from the same cursor', async (t) => {
    const start = (await read()).nextCursor;
    const { id: pushed, receiver } = await hooked.add(t, ['voucher.redeemed']);
    for (const reference of ['one', 'two', 'three']) await redeem(reference);
    const received = await receiver.has(3);
    await webhooks.remove.run(caller(), { id: String(pushed) });
    const first = await read({ after: start, limit: 2 });
    const second = await read({ after: first.nextCursor, limit: 200 });
    assert.deepEqual(await read({ after: start, limit: 2 }), first);
    assert.deepEqual((await read({ after: second.nextCursor })).items, []);
    assert.equal((await read({ after: second.nextCursor })).nextCursor, second.nextCursor);
    const both = [...first.items, ...second.items].filter(({ type }) => type === 'voucher.redeemed');
    const sent = new Map(received.map(({ headers, text }) => [headers['webhook-id'], text]));
    assert.equal(both.length, 3);
    for (const { id, ...body } of both) assert.equal(JSON.stringify(body), sent.get(id));
  });

  test('misses no event of a transaction that commits after later ones', async (t) => {
    const { service } = hooked;
    const { nextCursor: start } = await read({ limit: 200 });
    const owner = await ownerOf(t, hooked.till.testService.url);
    const held = newId(service.clock());
    await owner.query({ text: 'begin', values: [] });
    await owner.query(sql`
select scrip.announce_to(${Number(merchantId)}, 'float.low', ${held}::uuid, null, '{"held": true}', now())`);
    await redeem('later');
    const later = await read({ after: start });
    assert.deepEqual(references(later), ['later']);
    await owner.query({ text: 'commit', values: [] });
    const { items } = await read({ after: later.nextCursor });
    assert.deepEqual(
      items.map(({ data }) => data),
      [{ held: true }],
    );
  });

  test('gets each event once, in one order, if several read at the same moment', async () => {
    const { nextCursor: start } = await read({ limit: 200 });
    await Promise.all(Array.from({ length: 12 }, (_, index) => redeem(`at once ${index}`)));
    const readers = await Promise.all(Array.from({ length: 4 }, () => read({ after: start, limit: 200 })));
    const all = await read({ after: start, limit: 200 });
    assert.equal(new Set(references(all)).size, 12);
    for (const { items } of readers) assert.deepEqual(items, all.items.slice(0, items.length));
  });

  test('waits for another reader, and then sees what has committed meanwhile', async (t) => {
    const { nextCursor: start } = await read({ limit: 200 });
    const { service } = hooked;
    const { url } = hooked.till.testService;
    const owner = await ownerOf(t, url);
    const earlier = newId(service.clock());
    await redeem('waiting');
    await owner.query({ text: 'begin', values: [] });
    await owner.query(sql`select from scrip.webhook_endpoints where url is null for update`);
    const reading = read({ after: start });
    await waitForLocks(url, 1);
    await service.db.query(sql`
select announce_to(${Number(merchantId)}, 'float.low', ${earlier}::uuid, null, '{"earlier": true}', now())`);
    await owner.query({ text: 'commit', values: [] });
    const { items } = await reading;
    assert.deepEqual([items[0]?.data, items.length], [{ earlier: true }, 3]);
  });

  test('names the endpoint if there are several, and reads none of other merchants', async () => {
    const { nextCursor } = await read();
    const id = await add();
    await assert.rejects(read(), { code: 'invalid', message: /^endpoint is required/ });
    assert.deepEqual((await read({ endpoint: id })).items, []);
    await assert.rejects(read({ endpoint: id, after: nextCursor }), { message: /of another endpoint/ });
    await assert.rejects(read({ after: `${id}-7` }), { message: /ahead of the events/ });
    const { id: other } = await hooked.till.testService.createMerchant();
    await assert.rejects(listEvents.run(caller(), { merchantId: String(other), endpoint: id }), {
      code: 'not-found',
    });
    await webhooks.remove.run(caller(), { id });
    await assert.rejects(read({ endpoint: id }), { code: 'not-found' });
  });

  test('is told when events that it has not read are gone, whether they had been read by others', async () => {
    const { service, till } = hooked;
    const begun = await read({ limit: 1 });
    const { nextCursor: end } = await read({ limit: 200 });
    await redeem('never read');
    till.testService.clock.advance(130 * DAY_MS);
    await dropDeliveries(service);
    for (const after of [begun.nextCursor, end])
      await assert.rejects(read({ after }), { code: 'gone', message: /no longer kept: begin without it/ });
    const fresh = await read();
    assert.deepEqual(fresh.items, []);
    await redeem('after that');
    assert.deepEqual(references(await read({ after: fresh.nextCursor })), ['after that']);
  });
});
