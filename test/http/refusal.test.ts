import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRECEDENCE, REFUSALS, Refusal, type RefusalCode } from '../../src/refusal.ts';

test('a refusal has its code, its own or a given message, and no details but those given', () => {
  for (const [code, message] of Object.entries(REFUSALS)) {
    const refusal = new Refusal(code as RefusalCode);
    assert.deepEqual([refusal.name, refusal.code, refusal.message], ['Refusal', code, message]);
    assert.deepEqual(
      [refusal.errors, refusal.data, refusal.retryAfterSeconds],
      [undefined, undefined, undefined],
    );
  }
  const errors = [{ field: 'amount', rule: 'type', message: 'is a number' }];
  const given = new Refusal('30', {
    message: 'Invalid request: amount',
    errors,
    data: { a: 1 },
    retryAfterSeconds: 7,
  });
  assert.equal(given.message, 'Invalid request: amount');
  assert.deepEqual([given.errors, given.data, given.retryAfterSeconds], [errors, { a: 1 }, 7]);
});

test('a refusal captures no stack trace, and other errors still do', () => {
  const { stackTraceLimit } = Error;
  assert.doesNotMatch(new Refusal('13').stack ?? '', /\n\s+at /);
  assert.equal(Error.stackTraceLimit, stackTraceLimit);
  assert.match(new Error('a bug').stack ?? '', /\n\s+at /);
});

test('every refusal has its place in the order of precedence', () => {
  assert.deepEqual([...PRECEDENCE].sort(), Object.keys(REFUSALS).sort());
  assert.equal(PRECEDENCE[0], '98');
  // Refusals that depend on the time come after the replay.
  const inOrder: readonly RefusalCode[] = ['13', '03', '94', '17', '15', '61', '55'];
  assert.deepEqual(
    PRECEDENCE.filter((code) => inOrder.includes(code)),
    inOrder,
  );
});
