import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listDays } from '../../src/books/days.ts';
import { fillHistory } from '../../src/cli/demo-history.ts';
import { moveClock } from '../../src/db/clock.ts';
import { asOperator, startTestService } from '../support/harness.ts';

test('the demo history has ninety closed days, and is made and reported once', async (t) => {
  const { service, url, stop } = await startTestService();
  t.after(stop);
  const { actor } = asOperator(service);
  const reasoned = { ...actor, reason: 'the demo' };
  const lines: string[] = [];
  const progress = { tell: (line: string) => void lines.push(line), stopping: () => false };
  const began = performance.now();
  assert.equal(await fillHistory(service, url, reasoned, progress), true);
  t.diagnostic(`${Math.round(performance.now() - began)} ms`);
  const days = await listDays(service);
  assert.equal(days.filter(({ state }) => state === 'closed').length, 90);
  assert.match(lines.splice(0).join('; '), /^filling the empty database.*; made 90 closed days/);
  assert.equal(await fillHistory(service, url, reasoned, progress), false);
  assert.deepEqual(lines, []);

  // A start that was killed left the clock moved.
  const clock = await moveClock(url);
  try {
    await clock.set(new Date('2026-01-01T00:00:00Z'));
    assert.equal(await fillHistory(service, url, reasoned, progress), false);
    assert.match(lines.join('; '), /^a start was killed while it made the history, which ends soon after/);
  } finally {
    await clock.close();
  }
});
