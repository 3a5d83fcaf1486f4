import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openService } from '../../src/cli/open.ts';
import { readConfig } from '../../src/config.ts';
import { StartError } from '../../src/db/errors.ts';
import { createLogger } from '../../src/log.ts';
import { startTestService } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';

test('every connection of the service has fsync, synchronous_commit and full_page_writes on', async (t) => {
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

test('the service refuses to start while synchronous_commit is off, and a command starts', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const database = new URL(testService.url).pathname.slice(1);
  const set = (value: string) =>
    asOwner(testService.url, `alter database ${database} set synchronous_commit = ${value}`);
  const config = readConfig({ SCRIP_DATABASE_URL: testService.url, SCRIP_KEYS: testService.keys });
  const open = async (isService: boolean) => {
    const opened = await openService(config, {
      name: 'scrip-test',
      create: true,
      log: createLogger('silent'),
      isService,
    });
    await opened.close();
  };
  await set('off');
  await assert.rejects(open(true), (error: Error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /^the database has synchronous_commit = off.*set it to on/);
    return true;
  });
  await open(false);
  // These values differ in what a standby must have done. The commit is on the disk with each of them.
  for (const value of ['local', 'remote_apply', 'on']) {
    await set(value);
    await open(true);
  }
});
