import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listDays } from '../../src/books/days.ts';
import { findReport, makeReport } from '../../src/books/reports/reports.ts';
import { fillHistory } from '../../src/cli/demo-history.ts';
import { moveClock } from '../../src/db/clock.ts';
import { asOperator, startTestService } from '../support/harness.ts';

/** A whole history takes long; each end-to-end test of a demo makes one, and proves its books. */
const DAYS = 4;

test('a demo history that is stopped stays as it is, and says so', async (t) => {
  const { service, url, stop } = await startTestService();
  t.after(stop);
  const { actor } = asOperator(service);
  const reasoned = { ...actor, reason: 'the demo' };
  const lines: string[] = [];
  let asked = 0;
  const progress = { tell: (line: string) => void lines.push(line), stopping: () => ++asked > DAYS };
  assert.equal(await fillHistory(service, url, reasoned, progress), true);
  const days = await listDays(service);
  // The last day is not over.
  assert.equal(days.filter(({ state }) => state === 'closed').length, DAYS - 1);
  // Its general ledger has account numbers for every movement.
  const closed = days.filter(({ state }) => state === 'closed').map(({ day }) => day);
  const { tables } = await makeReport(service, findReport('R12') ?? assert.fail(), {
    from: closed.toSorted()[0],
    to: days.map(({ day }) => day).toSorted()[closed.length],
  } as never);
  assert.ok(tables.some(({ rows }) => rows.length > 0));
  assert.match(lines.splice(0).join('; '), /^filling the empty database.*; stopped while .* stays so/);
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
