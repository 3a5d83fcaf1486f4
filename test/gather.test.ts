import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { gather } from '../src/db/gather.ts';
import type { Database } from '../src/db/pool.ts';
import { Refusal } from '../src/refusal.ts';
import { startTestService } from './harness.ts';

/** How calls that wait become statements: by turns, by keys, and not without bound. */

type Call = { readonly caller: number; readonly key: string };

const NAP = { text: 'select pg_sleep(0.02)', values: [] };

/** An operation that takes the database a while, and remembers which calls shared a statement. */
async function operation(t: TestContext) {
  const { service, stop } = await startTestService();
  t.after(stop);
  const statements: (readonly Call[])[] = [];
  const call = gather<Call, number>({
    callerOf: ({ caller }) => caller,
    keysOf: ({ key }) => [key],
    async run(db: Database, calls) {
      const number = statements.push(calls);
      await db.query(NAP);
      return calls.map(() => number);
    },
  });
  let last = 0;
  const send = (caller: number, key = `own-${++last}`) => call(service.db, { caller, key });
  const flood = (caller: number, count: number) => Array.from({ length: count }, () => send(caller));
  return { send, flood, statements };
}

const refused = (error: unknown) => error instanceof Refusal && error.code === '91' && error.retryAfterSeconds === 1;

describe('gathering', () => {
  test('sends a single call at once and alone', async (t) => {
    const { send, statements } = await operation(t);
    await send(1);
    await send(1);
    assert.deepEqual(
      statements.map((calls) => calls.length),
      [1, 1],
    );
  });

  test('sends what waits together, and never two calls of one key', async (t) => {
    const { send, statements } = await operation(t);
    await Promise.all(Array.from({ length: 100 }, (_, index) => send(1, `key-${index % 50}`)));
    assert.ok(statements.length < 10, `${statements.length} statements`);
    for (const calls of statements) assert.equal(new Set(calls.map(({ key }) => key)).size, calls.length);
  });

  test('lets callers take turns: one who floods does not hold another up', async (t) => {
    const { send, flood, statements } = await operation(t);
    const many = flood(1, 900);
    await many[0];
    const sentBefore = statements.length;
    const waited = await Promise.all([send(2), send(3), send(2)]);
    // One or two statements are under way, and the next one takes them all.
    for (const number of waited) assert.ok(number <= sentBefore + 3, `statement ${number} after ${sentBefore}`);
    await Promise.all(many);
  });

  test('refuses at once what it cannot settle soon, and then the caller who floods', async (t) => {
    const { send, flood } = await operation(t);
    const outcomes = Promise.allSettled(flood(1, 6_000));
    const others = await Promise.allSettled(Array.from({ length: 20 }, () => send(2)));
    assert.deepEqual(
      others.filter(({ status }) => status === 'rejected'),
      [],
    );
    const rejected = (await outcomes).filter((each) => each.status === 'rejected');
    assert.ok(rejected.length > 1_000 && rejected.length < 6_000, `${rejected.length} refused`);
    for (const { reason } of rejected) assert.ok(refused(reason), String(reason));
  });
});
