import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import type { Service } from '../../src/context.ts';
import { Turns } from '../../src/db/turns.ts';
import { reading, tableOf } from '../../src/operation.ts';
import { perform } from '../../src/operations/perform.ts';
import type { Principal } from '../../src/principal.ts';
import { COMMAND_LINE } from '../support/harness.ts';

/** A heavy operation that lasts until it is ended, at a service of its own. */
function heavyReads() {
  const begun: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const [heavy] = tableOf(
    reading({
      name: 'books.heavy',
      summary: 'Read much',
      path: '/heavy',
      command: { none: 'of this test' },
      input: { place: Type.Integer() },
      output: Type.Null(),
      roles: ['owner'],
      isHeavy: true,
      run: (_caller, { place }) =>
        new Promise<null>((resolve, reject) => {
          begun.push(place);
          ends.push((error) => (error ? reject(error) : resolve(null)));
        }),
    }),
  );
  const service = { db: { isBusy: () => false }, memory: new Map() } as unknown as Service;
  const ask = (place: number, by: Partial<Principal>) => {
    const principal = { ...COMMAND_LINE, kind: 'token', ...by } as Principal;
    return perform(heavy ?? assert.fail(), { service, principal, input: { place } });
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { begun, ends, ask, turn };
}

test('heavy operations run one at a time in their order, and only a bounded number waits', async () => {
  const { begun, ends, ask, turn } = heavyReads();
  const answers = Array.from({ length: 21 }, (_, place) =>
    ask(place, { id: String(place % 3) }).catch(() => 'failed'),
  );
  await turn();
  assert.deepEqual(begun, [0]);
  await assert.rejects(ask(21, { id: '3' }), { code: 'too-many-requests', message: /many other requests/ });
  ends[0]?.(new Error('it failed'));
  await turn();
  assert.deepEqual(begun, [0, 1]);
  for (let place = 1; place <= 20; place++) {
    ends[place]?.();
    await turn();
    assert.equal(begun.length, Math.min(place + 2, 21));
  }
  const done = await Promise.all(answers);
  assert.equal(done[0], 'failed');
  assert.deepEqual(
    begun,
    Array.from({ length: 21 }, (_, place) => place),
  );
});

test('a client fills a third of the queue, and keeps no other one out', async () => {
  const { ends, ask, turn } = heavyReads();
  // The people and tokens of a merchant are one client.
  const ofMerchant = (place: number) => ask(place, { id: String(place), merchantId: 5 });
  const all = Array.from({ length: 7 }, (_, place) => ofMerchant(place));
  await turn();
  await assert.rejects(ofMerchant(7), { code: 'too-many-requests', message: /you have many requests/ });
  for (const other of [{ id: '9' }, { id: '9', kind: 'user' as const }, { id: '9', merchantId: 6 }])
    all.push(ask(8, other));
  for (let place = 0; place < all.length; place++) {
    await turn();
    ends[place]?.();
  }
  await Promise.all(all);
  const again = ofMerchant(0);
  await turn();
  ends.at(-1)?.();
  await again;
});

test('while tills are busy, one piece of work runs, and rests before the next one begins', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  let isBusy = true;
  const turns = new Turns({ isBusy: () => isBusy }, { atOnce: 2, rests: true });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) => () =>
    new Promise<void>((resolve) => {
      begun.push(name);
      ends.push(resolve);
    });
  const [first] = [turns.run(work('first')), turns.run(work('second')), turns.run(work('third'))];
  assert.deepEqual(begun, ['first']);
  ends[0]?.();
  await first;
  await turn();
  assert.deepEqual(begun, ['first'], 'the second began without a rest before it');
  assert.equal(turns.size, 3);
  t.mock.timers.tick(1_000);
  await turn();
  assert.deepEqual(begun, ['first', 'second']);
  isBusy = false;
  ends[1]?.();
  await turn();
  const fourth = turns.run(work('fourth'));
  assert.deepEqual(begun, ['first', 'second', 'third', 'fourth']);
  for (const end of ends) end();
  await fourth;
});

test('who is refused learns when there is room: after what is inside, spread over as long again', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const random = t.mock.method(Math, 'random', () => 0);
  const turns = new Turns({ isBusy: () => false }, { atOnce: 1 });
  assert.equal(turns.waitSeconds, 1);
  const ends: (() => void)[] = [];
  const work = () => new Promise<void>((resolve) => ends.push(resolve));
  const takes = async (tookMs: number) => {
    const done = turns.run(work);
    nowMs += tookMs;
    ends.at(-1)?.();
    await done;
  };
  for (let times = 0; times < 40; times++) await takes(2_000);
  const inside = Array.from({ length: 10 }, () => turns.run(work));
  assert.equal(turns.waitSeconds, 20);
  random.mock.mockImplementation(() => 0.5);
  assert.equal(turns.waitSeconds, 30);
  random.mock.mockImplementation(() => 0);
  for (let times = 0; times < 30; times++) inside.push(turns.run(work));
  assert.equal(turns.waitSeconds, 60, 'not longer than a minute');
  for (let at = 40; at < 80; at++) {
    ends[at]?.();
    await inside[at - 40];
  }
});
