import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nextTry } from '../../src/webhooks/record.ts';
import { readRetryAfter } from '../../src/webhooks/send.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test('a delivery is retried after the documented delays, up to a fifth later, and then fails', () => {
  const documented = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];
  assert.deepEqual(
    documented.map((_, index) => nextTry(index + 1, undefined, 0)),
    documented,
  );
  assert.deepEqual(
    documented.map((_, index) => nextTry(index + 1, undefined, 1)),
    documented.map((delay) => delay * 1.2),
  );
  assert.equal(nextTry(documented.length + 1, undefined, 0.5), undefined);
});

test('a retry waits at least for the Retry-After of the receiver, and at most a day', () => {
  const tries = fc.integer({ min: 1, max: 7 });
  const random = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(tries, random, fc.nat({ max: 10 ** 12 }), (count, chance, retryAfter) => {
      const delay = nextTry(count, retryAfter, chance) ?? 0;
      assert.ok(delay >= Math.min(retryAfter, 24 * HOUR));
      assert.ok(delay <= Math.max(24 * HOUR, 12 * HOUR));
      assert.ok(delay >= (nextTry(count, undefined, 0) ?? 0));
    }),
  );
});

test('Retry-After is read as seconds or as a date, and anything else is ignored', () => {
  const now = new Date('2030-01-31T12:00:00Z');
  assert.equal(readRetryAfter('120', now), 120_000);
  assert.equal(readRetryAfter(' 0 ', now), 0);
  assert.equal(readRetryAfter('Thu, 31 Jan 2030 12:01:00 GMT', now), 60_000);
  assert.equal(readRetryAfter('Thu, 31 Jan 2030 11:00:00 GMT', now), 0);
  for (const text of [undefined, '', '-5', '1.5', 'soon', '99999999999', '2030-01-31', 'Xxx, 99'])
    assert.equal(readRetryAfter(text, now), undefined);
});
