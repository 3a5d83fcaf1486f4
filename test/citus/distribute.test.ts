import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distribute } from '../../src/db/distribute.ts';
import { StartError } from '../../src/db/errors.ts';
import { testDatabase } from '../support/harness.ts';

test('distributing the tables of a server without Citus is refused with a message of one line', async (t) => {
  const { url } = await testDatabase(t);
  await assert.rejects(
    distribute(url),
    (error) =>
      error instanceof StartError && /^[^\n]*has no Citus|does not have Citus[^\n]*$/.test(error.message),
  );
});
