import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import { StartError } from '../src/db/errors.ts';
import { createLogger } from '../src/log.ts';
import { startTestService } from './harness.ts';
import { startPgBouncer } from './pgbouncer/bouncer.ts';

test('the service refuses to start behind a pooler in transaction mode, and names the setting', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const open = async (url: string) => {
    const config = readConfig({ SCRIP_DATABASE_URL: url, SCRIP_KEYS: testService.keys });
    const opened = await openService(config, {
      name: 'scrip-test',
      create: true,
      log: createLogger('silent'),
    });
    await opened.close();
  };
  await open(testService.url);
  const pooler = await startPgBouncer(testService.url, 'transaction');
  t.after(pooler.close);
  await assert.rejects(open(pooler.url), (error: Error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /set pool_mode = session/);
    return true;
  });
});
