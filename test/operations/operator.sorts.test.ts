import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { invited } from '../support/browser.ts';
import { makeToken, operatorApi } from '../support/operator.api.ts';
import { Till } from '../support/till.ts';

/** The orders of every list that has some: page by page, each item once. */

const api = operatorApi();

type Item = Readonly<Record<string, string | null>>;

const SORTED = OPERATIONS.filter(({ input }) => 'sort' in input.properties);
const ordersOf = (operation: (typeof OPERATIONS)[number]): readonly string[] =>
  (operation.input.properties['sort'] as { enum?: readonly string[] }).enum ?? [];

/** Reads a list to its end, two items at a time. */
async function readAll(path: string, sort: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await api.get(`${path}?limit=2&sort=${sort}${cursor}`);
    assert.equal(status, 200, JSON.stringify(body));
    items.push(...body.items);
    if (body.nextCursor === null || items.length > 100) return items;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

/** What is compared of an item: a text in any case, or a time, before all of which comes none. */
const compared = (item: Item, field: string) => String(item[field] ?? '').toLowerCase();

before(async () => {
  const { testService } = api;
  const { service } = testService;
  // Two of each name, in capitals or not: their ids decide.
  for (const [index, name] of ['beta', 'Alpha', 'alpha', 'Gamma', 'beta'].entries()) {
    await (await Till.another(testService)).voucher();
    const made = await api.post('/products', { code: `${name}${index}`, name, currency: 'EUR' });
    assert.ok(made.status < 300, JSON.stringify(made.body));
    await makeToken(testService, ['auditor'], undefined, name);
    await invited(service, { email: `${name}${index}@example.com`, roles: ['auditor'] });
    await service.db.query(sql`
insert into jobs (task, actor, created_at) values ('voucher.bulk', '{}', ${service.clock()})`);
  }
  await service.db.query(sql`
update operator_tokens set last_used_at = created_at + id * interval '1 microsecond'
where name <> 'Gamma'`);
});

describe('the orders of lists', () => {
  for (const operation of SORTED)
    for (const sort of ordersOf(operation).filter((each) => !each.startsWith('-')))
      test(`${operation.name} by ${sort} has each item once, in both directions`, async () => {
        const up = await readAll(operation.path, sort);
        const down = await readAll(operation.path, `-${sort}`);
        assert.ok(up.length >= 5, `${up.length} items`);
        assert.deepEqual(down, up.toReversed());
        const values = up.map((item) => compared(item, sort));
        assert.deepEqual(values, values.toSorted());
        assert.equal(new Set(up.map((item) => JSON.stringify(item))).size, up.length);
      });

  for (const operation of SORTED)
    for (const [filter, { examples }] of Object.entries<{ examples?: readonly unknown[] }>(
      operation.input.properties,
    ).filter(([name]) => !['sort', 'cursor', 'limit'].includes(name)))
      test(`${operation.name} has them beside ${filter}`, async () => {
        const value = encodeURIComponent(String(examples?.[0] ?? 1));
        for (const sort of ordersOf(operation)) {
          const { status, body } = await api.get(`${operation.path}?${filter}=${value}&sort=${sort}`);
          assert.ok(status === 200 || body.errors[0].field === filter, JSON.stringify(body));
        }
      });

  test('one that a list does not have is refused with those that it has', async () => {
    const { status, body } = await api.get('/products?sort=currency');
    assert.equal(status, 400);
    assert.deepEqual(body.errors, [
      { field: 'sort', rule: 'enum', message: 'must be one of code, -code, name, -name' },
    ]);
  });

  test('a cursor belongs to its order', async () => {
    const first = await api.get('/products?limit=1&sort=name');
    const { status, body } = await api.get(`/products?limit=1&sort=-name&cursor=${first.body.nextCursor}`);
    assert.equal(status, 400);
    assert.equal(body.errors[0].field, 'cursor');
  });
});
