import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { DIALECTS } from '../support/dialects.ts';
import { ownerOf } from '../support/owner.ts';
import { tillsOfOneService } from '../support/till.ts';

const openTill = tillsOfOneService();
const [{ generate }] = DIALECTS;

test('the redemption that the benchmark compares with books what the service books', async (t) => {
  const { merchant, testService } = await openTill({ product: 'DEFAULT' });
  const { data } = await testService.request(merchant, generate('order', 1, 25));
  const serialNumber = BigInt(data.vouchers[0].serialNumber);
  const owner = await ownerOf(t, testService.url);
  for (const file of ['yardstick', 'fill', 'books']) {
    const text = await readFile(new URL(`../../bench/${file}.sql`, import.meta.url), 'utf8');
    await owner.query({ text, values: [] });
  }

  await owner.query(sql`select bench.redeem_many(${merchant.id}, ${[serialNumber]}, 'past', 3)`);
  for (const reference of ['one', 'two'])
    assert.deepEqual(
      await owner.query(sql`
select bench.redeem(${merchant.id}, ${serialNumber / 64n}, ${reference}, 100) as answer`),
      [{ answer: '00' }],
    );

  assert.deepEqual(
    await owner.query(sql`select balance_minor from scrip.vouchers where serial_number = ${serialNumber}`),
    [{ balance_minor: 2_297n }],
  );
  const { checks } = await reconcile(testService.service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});
