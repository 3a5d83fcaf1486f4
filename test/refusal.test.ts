import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRECEDENCE, REFUSALS, Refusal, type RefusalCode } from '../src/refusal.ts';

test('a refusal tells its code and its message, or the one that it was given, and nothing that was not said', () => {
  for (const [code, message] of Object.entries(REFUSALS)) {
    const refusal = new Refusal(code as RefusalCode);
    assert.deepEqual([refusal.name, refusal.code, refusal.message], ['Refusal', code, message]);
    assert.deepEqual(
      [refusal.errors, refusal.data, refusal.retryAfterSeconds],
      [undefined, undefined, undefined],
    );
  }
  const errors = [{ field: 'amount', rule: 'type', message: 'is a number' }];
  const told = new Refusal('30', {
    message: 'Invalid request: amount',
    errors,
    data: { a: 1 },
    retryAfterSeconds: 7,
  });
  assert.equal(told.message, 'Invalid request: amount');
  assert.deepEqual([told.errors, told.data, told.retryAfterSeconds], [errors, { a: 1 }, 7]);
});

test('a refusal costs no stack, and leaves that of errors as it is', () => {
  const { stackTraceLimit } = Error;
  assert.doesNotMatch(new Refusal('13').stack ?? '', /\n\s+at /);
  assert.equal(Error.stackTraceLimit, stackTraceLimit);
  assert.match(new Error('a bug').stack ?? '', /\n\s+at /);
});

test('every refusal has its place in the order of precedence', () => {
  assert.deepEqual([...PRECEDENCE].sort(), Object.keys(REFUSALS).sort());
  assert.equal(PRECEDENCE[0], '98');
  // What can change with time stands behind the replay.
  const inOrder: readonly RefusalCode[] = ['13', '03', '94', '17', '15', '61', '55'];
  assert.deepEqual(
    PRECEDENCE.filter((code) => inOrder.includes(code)),
    inOrder,
  );
});
