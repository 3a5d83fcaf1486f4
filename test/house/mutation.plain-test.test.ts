import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as plain from '../../mutation/plain-test.ts';

/** Runs the tests of a file. @returns its steps in order, the result, and whether a failure was reported */
async function run(declare: (did: (step: string) => () => void) => unknown) {
  const done: string[] = [];
  const did = (step: string) => () => void done.push(step);
  let failures = 0;
  const failed = await plain
    .runFile(
      async () => declare(did),
      () => void failures++,
    )
    .then(
      (count) => `${count} passed`,
      (error: Error) => error.message,
    );
  return { done: done.join(' '), failed, reported: failures > 0 };
}

const fail = (message: string) => () => {
  throw new Error(message);
};

test('tests run in their order, between their hooks', async () => {
  const { before, beforeEach, after, describe, test: each } = plain;
  const outcome = await run((did) => {
    before(did('before'));
    after(did('after'));
    beforeEach(did('each'));
    each('one', (t) => {
      t.after(did('after-one'));
      did('one')();
    });
    describe('a group', () => {
      before(did('before-group'));
      after(did('after-group'));
      beforeEach(did('each-of-group'));
      each('two', did('two'));
      each('left out', { skip: 'why not' }, did('left-out'));
    });
    each('three', did('three'));
  });
  assert.deepEqual(outcome, {
    done: 'before each one after-one before-group each each-of-group two after-group each three after',
    failed: '3 passed',
    reported: false,
  });
});

test('the first failure anywhere ends the run, and the hooks after it still run', async () => {
  const { before, beforeEach, after, describe, test: each } = plain;
  const failing = {
    'in a test': (did: (what: string) => () => void) => {
      each('fails', (t) => {
        t.after(did('cleared'));
        return Promise.reject(new Error('in a test'));
      });
    },
    'in what comes before': (did: (what: string) => () => void) => {
      after(did('cleared'));
      before(fail('in what comes before'));
      each('one', did('one'));
    },
    'in what comes before each': (did: (what: string) => () => void) => {
      after(did('cleared'));
      beforeEach(fail('in what comes before each'));
      each('one', did('one'));
    },
    'in what comes after a test': (did: (what: string) => () => void) => {
      each('one', (t) => {
        t.after(fail('in what comes after a test'));
        t.after(did('cleared'));
      });
    },
    'in a group': (did: (what: string) => () => void) => {
      describe('a group', () => {
        after(did('cleared'));
        each('fails', fail('in a group'));
        each('two', did('two'));
      });
    },
  };
  for (const [where, declare] of Object.entries(failing)) {
    const outcome = await run((did) => {
      declare(did);
      each('never', did('never'));
    });
    assert.deepEqual(outcome, { done: 'cleared', failed: where, reported: true }, where);
  }
  assert.deepEqual(await run(fail('in the file')), { done: '', failed: 'in the file', reported: true });
});
