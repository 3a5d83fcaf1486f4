import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listDays } from '../src/books/days.ts';
import { fillHistory } from '../src/cli/demo-history.ts';
import { asOperator, startTestService } from './harness.ts';

test('the demo has ninety closed days whose books agree, and is told once', async (t) => {
  const { service, url, stop } = await startTestService();
  t.after(stop);
  const { actor } = asOperator(service);
  const reasoned = { ...actor, reason: 'the demo' };
  const progress = { tell: () => {}, stopping: () => false };
  const began = performance.now();
  assert.equal(await fillHistory(service, url, reasoned, progress), true);
  t.diagnostic(`${Math.round(performance.now() - began)} ms`);
  const days = await listDays(service);
  assert.equal(days.filter(({ state }) => state === 'closed').length, 90);
  assert.equal(await fillHistory(service, url, reasoned, progress), false);
});
