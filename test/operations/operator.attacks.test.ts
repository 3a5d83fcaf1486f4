import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { audit } from '../../src/audit/audit.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { writeCursor } from '../../src/page.ts';
import { designs } from '../../src/products/designs.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { asOperator } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';

/** Attacks with a token on what its holder may call. */

const api = operatorApi();
let merchantId: number;

before(async () => {
  merchantId = (await api.testService.createMerchant()).id;
});

/** Positions that no list has, and that a database may not take. */
const POSITIONS = [['x'], [1e99], ['\u0000'], []];

const BATCH = '01890000-0000-7000-8000-000000000000';

const isList = ({ input }: (typeof OPERATIONS)[number]) => 'cursor' in input.properties;

describe('a cursor', () => {
  test('that the service has not made is refused by every list, whatever it holds', async () => {
    const lists = [
      ['/operator/v1', OPERATIONS, undefined],
      ['/portal/v1', PORTAL_OPERATIONS, merchantId],
    ] as const;
    for (const [prefix, operations, owner] of lists) {
      const authorization = `Bearer ${await api.token(['owner'], owner)}`;
      const found = operations.filter(isList);
      assert.ok(found.length >= 8);
      for (const { method, path } of found)
        for (const position of POSITIONS) {
          const cursor = writeCursor(position as never);
          const url = `${prefix}${path.replace(/:\w+/g, '1')}`;
          const { status } =
            method === 'GET'
              ? await api.call('GET', `${url}?cursor=${cursor}`, undefined, { authorization })
              : await api.call('POST', url, { cursor, batch: BATCH, reason: 'x' }, { authorization });
          assert.ok(status === 400 || status === 404, `${method} ${url} ${position}: ${status}`);
        }
    }
  });
});

describe('a token that does something often', () => {
  test('is stopped at the limit of a minute, however much of it is done at once', async () => {
    const { service } = api.testService;
    const { actor } = asOperator(service);
    const by = { service, actor: { ...actor, kind: 'token', id: '77' } as const };
    const change = { action: 'voucher.find', subject: 'vouchers', perMinute: 5 };
    const all = Array.from({ length: 12 }, () => service.db.transaction((tx) => audit(tx, by, change)));
    const done = await Promise.allSettled(all);
    assert.equal(done.filter(({ status }) => status === 'fulfilled').length, 5);
  });

  test('sends ten tests of webhooks a minute', async () => {
    const wanted = { merchantId, url: 'https://192.0.2.1/hook', events: null, full: false };
    const { id } = await addEndpoint(asOperator(api.testService.service), wanted, true);
    const statuses: number[] = [];
    for (let count = 0; count < 12; count++)
      statuses.push((await api.post(`/webhooks/${id}/test`, { reason: 'x' })).status);
    assert.deepEqual(statuses, [...Array(10).fill(200), 429, 429]);
  });
});

describe('a colleague', () => {
  test('makes the service read one logo at a time, outside of any transaction', async () => {
    const { service } = api.testService;
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>';
    const logo = Buffer.from(svg).toString('base64');
    const all = ['one', 'two', 'three'].map((name) => designs.set.run(asOperator(service), { name, logo }));
    const done = await Promise.allSettled(all);
    assert.deepEqual(
      done.map((each) => (each.status === 'fulfilled' ? each.value.name : each.reason.code)),
      ['one', 'too-many-requests', 'too-many-requests'],
    );
    assert.equal(designs.set.effect, 'outside');
    assert.equal((await designs.set.run(asOperator(service), { name: 'two', logo })).hasLogo, true);
  });

  test('who follows a job on many pages leaves places for others', async () => {
    const job = await api.post('/reconcile', {});
    const follow = async (token: string) => {
      const closing = new AbortController();
      // A page keeps its response: fetch ends an answer whose response is garbage-collected.
      const page = await fetch(`${api.testService.baseUrl}/operator/v1/jobs/${job.body.id}/events`, {
        headers: { authorization: `Bearer ${token}` },
        signal: closing.signal,
      });
      const end = async () => {
        closing.abort();
        await page.body?.cancel().catch(() => {});
      };
      return { page, end };
    };
    const [one, other] = [await api.token(['auditor']), await api.token(['auditor'])];
    const pages = await Promise.all(Array.from({ length: 20 }, () => follow(one)));
    assert.deepEqual(new Set(pages.map(({ page }) => page.status)), new Set([200]));
    pages.push(await follow(one), await follow(other));
    assert.deepEqual(
      pages.slice(-2).map(({ page }) => page.status),
      [429, 200],
    );
    for (const { end } of pages) await end();
  });
});
