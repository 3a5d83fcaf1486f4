import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from './harness.ts';

test('no connection of the service gives up durability: fsync, synchronous_commit and full_page_writes are on', async (t) => {
  const { service, stop } = await startTestService();
  t.after(stop);
  const text = `
select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes')
  order by name`;
  const on = ['fsync', 'full_page_writes', 'synchronous_commit'].map((name) => ({ name, setting: 'on' }));
  assert.deepEqual(await service.db.query({ text, values: [] }), on);
  assert.deepEqual(await service.db.hot({ name: 'durability', text }, []), on);
  await service.db.transaction(async (tx) => assert.deepEqual(await tx.query({ text, values: [] }), on));
});
