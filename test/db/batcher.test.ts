import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Batcher } from '../../src/db/batcher.ts';
import { bucketsOf } from '../../src/db/buckets.ts';
import { AGAIN, type Operation } from '../../src/db/operation.ts';
import { Refusal } from '../../src/refusal.ts';
import { startTestService } from '../support/harness.ts';

/**
 * How requests that wait become calls: merchants take turns, keys are exclusive, and the queue is bounded.
 */

type Request = { readonly merchant: number; readonly key: string; readonly bucket: number };
type Row = { readonly call: number };

const NAP = { text: 'select pg_sleep(0.02)', values: [] };

/** An operation that takes the database a while, and records which requests shared a call. */
async function open(t: TestContext, more: Partial<Operation<Request, Row, number>> = {}, buckets = [0]) {
  const { service, stop } = await startTestService(undefined, { isPatient: true });
  t.after(stop);
  const calls: (readonly Request[])[] = [];
  const operation: Operation<Request, Row, number> = {
    merchantOf: ({ merchant }) => merchant,
    keysOf: ({ key }) => [key],
    async run(db, requests, bucket) {
      assert.deepEqual(new Set(requests.map((request) => request.bucket)), new Set([bucket]));
      const call = calls.push(requests);
      await db.query(NAP);
      return requests.map(() => ({ call }));
    },
    answer: (_, { call }) => call,
    ...more,
  };
  const batcher = new Batcher(service.db, { buckets: bucketsOf(buckets) });
  let last = 0;
  const send = (merchant: number, key = `own-${++last}`, bucket = 0) =>
    batcher.add(operation, bucket, { merchant, key, bucket });
  const flood = (merchant: number, count: number) => Array.from({ length: count }, () => send(merchant));
  return { send, flood, calls };
}

const isOverloaded = (error: unknown) => error instanceof Refusal && error.code === '91';

describe('the batcher', () => {
  test('sends a single request at once and alone', async (t) => {
    const { send, calls } = await open(t);
    await send(1);
    await send(1);
    assert.deepEqual(
      calls.map((requests) => requests.length),
      [1, 1],
    );
  });

  test('sends larger calls over shards, and one at a time', async (t) => {
    const { flood, calls } = await open(t, {}, [1, 2]);
    await Promise.all(flood(1, 700));
    assert.deepEqual(
      calls.map((requests) => requests.length),
      [512, 188],
    );
  });

  test('sends waiting requests as one call, but never two of the same key', async (t) => {
    const { send, calls } = await open(t);
    await Promise.all(Array.from({ length: 100 }, (_, index) => send(1, `key-${index % 50}`)));
    assert.ok(calls.length < 10, `${calls.length} calls`);
    for (const requests of calls) assert.equal(new Set(requests.map(({ key }) => key)).size, requests.length);
  });

  test('sends a call for each bucket', async (t) => {
    const { send, calls } = await open(t);
    await Promise.all(Array.from({ length: 40 }, (_, index) => send(1, `key-${index}`, index % 2)));
    assert.deepEqual(
      calls.map((requests) => requests.length),
      [20, 20],
    );
  });

  test('takes turns between merchants: one that floods does not delay the others', async (t) => {
    const { send, flood, calls } = await open(t);
    const many = flood(1, 900);
    await many[0];
    const sentBefore = calls.length;
    const waited = await Promise.all([send(2), send(3), send(2)]);
    // One or two calls are under way, and the next one takes all three.
    for (const call of waited) assert.ok(call <= sentBefore + 3, `call ${call} after ${sentBefore}`);
    await Promise.all(many);
  });

  test('declines requests of a merchant that floods once its queue is full', async (t) => {
    const { send, flood } = await open(t);
    const outcomes = Promise.allSettled(flood(1, 6_000));
    const others = await Promise.allSettled(Array.from({ length: 20 }, () => send(2)));
    assert.deepEqual(
      others.filter(({ status }) => status === 'rejected'),
      [],
    );
    const rejected = (await outcomes).filter((each) => each.status === 'rejected');
    assert.ok(rejected.length > 1_000 && rejected.length < 6_000, `${rejected.length} declined`);
    for (const { reason } of rejected) assert.ok(isOverloaded(reason), String(reason));
  });
});

describe('a request in a call', () => {
  test('fails alone if its row cannot be turned into an answer', async (t) => {
    const broken = new Error('this row cannot be opened');
    const { send, calls } = await open(t, {
      answer({ key }, { call }) {
        if (key === 'broken') throw broken;
        return call;
      },
    });
    const outcomes = await Promise.allSettled(['a', 'broken', 'b'].map((key) => send(1, key)));
    assert.equal(calls.length, 1);
    assert.deepEqual(outcomes, [
      { status: 'fulfilled', value: 1 },
      { status: 'rejected', reason: broken },
      { status: 'fulfilled', value: 1 },
    ]);
  });

  test('goes with the next call if it must be repeated, before later ones of its merchant', async (t) => {
    const turns = new Map<string, number>();
    const { send, calls } = await open(t, {
      run: async (_, requests) => {
        calls.push(requests);
        return requests.map(({ key }) => {
          turns.set(key, (turns.get(key) ?? 0) + 1);
          return key === 'late' && turns.get(key) === 1 ? AGAIN : { call: calls.length };
        });
      },
    });
    const later = Array.from({ length: 900 }, (_, index) => `later-${index}`);
    await Promise.all(['late', ...later].map((key) => send(1, key)));
    assert.equal(turns.get('late'), 2);
    const second = calls.findLastIndex((requests) => requests.some(({ key }) => key === 'late'));
    // Two calls may be under way when the first of them ends.
    assert.ok(calls.length > 4 && second <= 2, `call ${second + 1} of ${calls.length}`);
  });

  test('is declined if it must be repeated too often', async (t) => {
    const { send } = await open(t, { run: async (_, requests) => requests.map(() => AGAIN) });
    await assert.rejects(send(1), isOverloaded);
  });

  test('fails with its call, and the requests behind it are sent', async (t) => {
    let isFirst = true;
    const { send, calls } = await open(t, {
      run: async (_, requests) => {
        calls.push(requests);
        if (!isFirst) return requests.map(() => ({ call: calls.length }));
        isFirst = false;
        throw new Error('a defect');
      },
    });
    const failed = Promise.allSettled([send(1, 'a'), send(1, 'b')]);
    const behind = send(1, 'a');
    assert.deepEqual(
      (await failed).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await behind, 2);
  });

  test('fails behind a failed call only if the database is away', async (t) => {
    for (const [code, message, isBehindSent] of [
      ['ECONNREFUSED', 'connect ECONNREFUSED', false],
      ['EPOOLEXHAUSTED', 'all connections to the database are in use', true],
      ['EKEYMISSING', 'a key is missing', true],
    ] as const) {
      let isFirst = true;
      const { send } = await open(t, {
        run: async (_, requests) => {
          if (!isFirst) return requests.map(() => ({ call: 2 }));
          isFirst = false;
          throw Object.assign(new Error(message), { code });
        },
      });
      const [first, behind] = await Promise.allSettled([send(1, 'a'), send(1, 'a')]);
      assert.equal(first?.status, 'rejected');
      assert.equal(behind?.status, isBehindSent ? 'fulfilled' : 'rejected', code);
    }
  });
});
