import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { topUp } from '../support/approvals.ts';
import { enrolled } from '../support/browser.ts';
import { testService } from '../support/harness.ts';
import { Operator } from '../support/operator.ts';

test('the command line requires --break-glass with a reason once two people can approve', async (t) => {
  const listening = await testService(t);
  const { id } = await listening.createMerchant();
  const operator = Operator.at(listening, {});
  const run = (...args: string[]) => operator.run`float top-up --merchant ${id} --amount 20000 ${args}`;
  assert.equal((await run()).status, 0);
  const ada = await enrolled(listening);
  assert.equal((await run()).status, 0);
  await enrolled(listening, { email: 'bob@example.com' });
  const refused = await run();
  assert.equal(refused.status, 1);
  assert.match(refused.err, /approved by another person.*--break-glass and --reason/);
  assert.match((await run('--break-glass')).err, /--break-glass needs --reason/);
  assert.equal((await run('--break-glass', '--reason', 'Bob is ill')).status, 0);
  // The same holds for commands that the API does not have yet.
  const refund = ['float', 'refund', '--merchant', String(id), '--amount', '5', '--reference', 'back-1'];
  assert.match((await operator.run(...refund, '--reason', 'as agreed')).err, /--break-glass and --reason/);
  const { approval } = (await ada.browser.post('/floats/top-up', topUp(String(id)))).body;
  assert.match((await operator.run`approval approve ${approval.id}`).err, /--break-glass and --reason/);
  assert.equal(
    (await operator.run`approval approve ${approval.id} --break-glass --reason ${'Bob is ill'}`).status,
    0,
  );
  assert.equal((await operator.json`approval show ${approval.id}`).breakGlass, true);
  const kinds = await listening.service.db.query<{ action: string }>(
    sql`
      select action from audit where actor_kind = 'break-glass' and reason = 'Bob is ill' order by sequence`,
  );
  assert.deepEqual(
    kinds.map(({ action }) => action),
    ['float.top-up', 'approval.approve'],
  );
  const shown = await operator.json`audit break-glass`;
  assert.deepEqual(
    shown.map((each: { action: string; reason: string }) => [each.action, each.reason]),
    [
      ['approval.approve', 'Bob is ill'],
      ['float.top-up', 'Bob is ill'],
    ],
  );
  const [{ occurredAt, until }] = shown;
  assert.equal(Date.parse(until) - Date.parse(occurredAt), 7 * 86_400_000);
});
