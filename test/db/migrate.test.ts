import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { StartError } from '../../src/db/errors.ts';
import { migrate } from '../../src/db/migrate.ts';
import { emptyDatabase, testDatabase } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';

const MIGRATIONS = new URL('../../sql/', import.meta.url);

test('concurrent calls of migrate apply every migration once', async (t) => {
  const { url } = await emptyDatabase(t);
  const names = (await readdir(MIGRATIONS)).filter((name) => /^\d/.test(name)).sort();
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)]);
  assert.deepEqual(applied.flat(), names);
  assert.deepEqual(await migrate(url), []);
});

test('migrate refuses a newer schema and changed migrations with a message of one line', async (t) => {
  const { url } = await testDatabase(t);
  await asOwner(
    url,
    `insert into scrip.migrations (version, name, digest, works_from) values (999, '999-later.sql', 'x', 999)`,
  );
  await assert.rejects(
    migrate(url),
    (error) => error instanceof StartError && /^[^\n]*newer schema[^\n]*$/.test(error.message),
  );
  await asOwner(
    url,
    `delete from scrip.migrations where version = 999; update scrip.migrations set digest = 'x'`,
  );
  await assert.rejects(
    migrate(url),
    (error) => error instanceof StartError && /was changed/.test(error.message),
  );
});
