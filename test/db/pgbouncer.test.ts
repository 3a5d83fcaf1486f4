import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { openService } from '../../src/cli/open.ts';
import { startBackground } from '../../src/cli/work.ts';
import { readConfig } from '../../src/config.ts';
import { StartError } from '../../src/db/errors.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createLogger } from '../../src/log.ts';
import { createPooledAccount, startPgBouncer } from '../pgbouncer/bouncer.ts';
import { emptyDatabase, startTestService } from '../support/harness.ts';

/** What a service refuses behind a pooler in transaction mode; see test/run.ts for what it serves there. */

/** Behind a pooler in session mode, all accounts are one. */
const skip =
  process.env['SCRIP_TEST_SERVICE_URL'] === undefined && 'needs `npm test -- --on pgbouncer-transaction`';

async function pooled(t: TestContext, url: string, keepsStatements: boolean): Promise<string> {
  const pooler = await startPgBouncer(url, { mode: 'transaction', keepsStatements });
  t.after(pooler.close);
  return pooler.url;
}

function refuses(work: Promise<unknown>, expected: RegExp): Promise<void> {
  return assert.rejects(work, (error: Error) => {
    assert.ok(error instanceof StartError, String(error));
    assert.match(error.message, expected);
    return true;
  });
}

async function open(url: string, keys: string) {
  const config = readConfig({ SCRIP_DATABASE_URL: url, SCRIP_KEYS: keys });
  return openService(config, { name: 'scrip-test', create: true, log: createLogger('silent') });
}

test('a pooler that shares sessions and drops prepared statements is refused', async (t) => {
  const { url, keys, stop } = await startTestService();
  t.after(stop);
  await (await open(url, keys)).close();
  await refuses(
    open(await pooled(t, url, false), keys),
    /set pool_mode = session, or max_prepared_statements/,
  );
});

test('a pooler that shares sessions needs an account with their settings', { skip }, async (t) => {
  const { url, keys, stop } = await startTestService();
  t.after(stop);
  const address = await pooled(t, url, true);
  await refuses(
    open(address, keys),
    /the account needs its settings .*: role, search_path, .*enable_bitmapscan/,
  );
  const service = await open(await pooled(t, await createPooledAccount(url), true), keys);
  t.after(() => service.close());
  const [session] = await service.service.db.query<{ name: string }>({
    text: 'select current_user as name',
    values: [],
  });
  assert.equal(session?.name, 'scrip_service');
  await refuses(startBackground(service.service, service.config), /^background work needs a session/);
});

test('migrations need a session of their own', { skip }, async (t) => {
  const { url } = await emptyDatabase(t);
  await refuses(migrate(await pooled(t, url, true)), /^migrations need a session/);
});
