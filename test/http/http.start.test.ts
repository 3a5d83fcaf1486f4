import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildServer } from '../../src/http/server.ts';
import { testService } from '../support/harness.ts';

test('a server starts however busy its machine is: no time limit makes the start fail', async (t) => {
  const { service } = await testService(t);
  const app = buildServer(service);
  t.after(() => app.close());
  assert.equal(app.initialConfig.pluginTimeout, 0);
});
