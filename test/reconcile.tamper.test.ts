import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { busyDay } from './busy-day.ts';
import { startTestService, type TestService } from './harness.ts';

let testService: TestService;
let owner: Awaited<ReturnType<typeof openOwner>>;

before(async () => {
  testService = await startTestService();
  owner = await openOwner(testService.url);
  await owner.query(sql`set search_path to scrip`);
  await busyDay(testService);
});

after(async () => {
  await owner?.close();
  await testService?.stop();
});

// Without its operation a redemption no longer uses its reference up: a retry would be a second payment.
for (const [what, reference] of [
  ['a redemption', 'sale-3'],
  ['an updated redemption', 'sale-0'],
] as const) {
  test(`reconcile sees ${what} that has given its reference free`, async () => {
    assert.equal((await reconcile(testService.service.db)).ok, true);
    await owner.query(sql`update journal set operation = null where reference = ${reference}`);
    const { ok, checks } = await reconcile(testService.service.db);
    await owner.query(sql`update journal set operation = 'redeem' where reference = ${reference}`);
    assert.equal(ok, false);
    const red = checks.filter((check) => !check.ok);
    assert.deepEqual(
      red.map(({ name, differing }) => [name, differing.length]),
      [['journal-entries', 1]],
    );
  });
}
