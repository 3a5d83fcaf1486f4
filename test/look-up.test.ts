import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Context, Service } from '../src/context.ts';
import { newRingKey } from '../src/keyring/text.ts';
import { Refusal, type RefusalCode } from '../src/refusal.ts';
import { beginRotation } from '../src/rotation/rotate.ts';
import { lookUp } from '../src/vouchers/look-up.ts';
import { asOperator, startTestService } from './harness.ts';
import { Bench } from './statement.ts';

let bench: Bench;
let open: Context;
let opaque: Context;
const voucher = { code: '123456789012', pin: '1234' };

before(async () => {
  bench = await Bench.open();
  open = await bench.merchant();
  opaque = { ...open, merchant: { ...open.merchant, opaque: true } };
});
after(() => bench.close());

const guesses = async () => {
  const [row] = await bench.query<{ guesses: number }>(
    'select coalesce(sum(guesses), 0)::int as guesses from api_key_days',
  );
  return row?.guesses;
};

const refused = (context: Context, ask: () => Promise<object | string>) =>
  lookUp(context, voucher, ask as Parameters<typeof lookUp>[2]).then(
    () => assert.fail('it was not refused'),
    (error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)),
  );

test('an unknown code and a wrong PIN are guesses, a locked PIN is one of an opaque merchant, and any other refusal is none', async () => {
  for (const [index, code] of ['14', '55'].entries()) {
    assert.equal(await refused(open, async () => code), code);
    assert.equal(await guesses(), index + 1);
  }
  for (const code of ['75', '94', '51']) assert.equal(await refused(open, async () => code), code);
  for (const code of ['94', '51']) assert.equal(await refused(opaque, async () => code), code);
  assert.equal(await guesses(), 2);
  assert.equal(await refused(opaque, async () => '75'), '14');
  assert.equal(await guesses(), 3);
});

test('an opaque merchant gets the same for both, and for a locked PIN, however long either takes to be found out', async () => {
  for (const code of ['14', '55', '75']) {
    // Whatever the machine has to do, of two timers the shorter one that began first ends first.
    const shorter = sleep(40, 'nothing yet');
    const told = refused(opaque, async () => code);
    assert.equal(await Promise.race([told, shorter]), 'nothing yet');
    assert.equal(await told, '14');
    assert.equal(await refused(opaque, () => sleep(120, code)), '14');
  }
  assert.equal(await refused(open, async () => '75'), '75');
  // Any other state is reported after the PIN was right.
  for (const code of ['44', '43', '54', '40', '42', '51'])
    assert.equal(await refused(opaque, async () => code), code);
});

test('what is found is told at once, and nothing is left behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const found = { found: true };
  const count = timers();
  for (const context of [open, opaque])
    assert.equal(await lookUp(context, voucher, async () => found), found);
  assert.equal(timers(), count);
});

test('a key has few look-ups under way at first, one more for each right answer, and few again after a guess', async () => {
  const context = await bench.merchant();
  const begun: ((answer: object | RefusalCode) => void)[] = [];
  const asked: Promise<unknown>[] = [];
  const ask = (count: number) => {
    for (let index = 0; index < count; index++) {
      const begin = () => new Promise<object | RefusalCode>((resolve) => begun.push(resolve));
      asked.push(
        lookUp(context, voucher, begin as Parameters<typeof lookUp>[2]).catch((error: unknown) => error),
      );
    }
  };
  let next = 0;
  /** Answers the eldest of those that have begun. @returns how many have begun then that were not */
  const answer = async (count: number, what: object | RefusalCode) => {
    const before = begun.length;
    const answered = asked.slice(next, next + count);
    for (let index = 0; index < count; index++) begun[next++]?.(what);
    await Promise.all(answered);
    await setImmediate();
    return begun.length - before;
  };
  ask(300);
  await setImmediate();
  assert.equal(begun.length, 16);
  // Who was right makes room for two, who was refused for something else for one.
  assert.equal(await answer(16, { found: true }), 32);
  assert.equal(await answer(8, '75'), 8);
  assert.equal(await answer(32, { found: true }), 64);
  // Of 64 at a time, a guess leaves 16: as many end before another one begins.
  assert.equal(await answer(1, '55'), 0);
  assert.equal(await answer(47, '75'), 0);
  assert.equal(await answer(3, '75'), 3);
  while (next < asked.length) await answer(begun.length - next, '75');
  await Promise.all(asked);
});

test('while vouchers move to another key, both are asked, the older first, until one says more than that it knows none', async () => {
  const keys = `${newRingKey()},${bench.served.keys}`;
  const another = () => startTestService({ ...bench.served, keys });
  const [first, second, third] = [await another(), await another(), await another()];
  await beginRotation(asOperator(first.service), undefined);
  const [older, newer] = first.service.keys.lookUps(voucher).map(({ codeKey }) => codeKey);
  assert.ok(older && newer && older !== newer);
  const name = ({ codeKey, pinKey }: Parameters<Parameters<typeof lookUp>[2]>[0]) => {
    if (codeKey === older) return 'older';
    if (codeKey === newer) return 'newer';
    for (const key of [codeKey, pinKey]) assert.match(key, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    return 'nobody';
  };
  const found = { found: true };
  /** Whom it asks, if they answer so, and what comes of it. */
  const asked = async (context: Context, service: Service, ...answers: (string | object)[]) => {
    const names: string[] = [];
    const outcome = await lookUp({ ...context, service }, voucher, async (each) => {
      names.push(name(each));
      return (answers[names.length - 1] ?? assert.fail('asked once more')) as RefusalCode;
    }).then(
      (answer) => (answer === found ? 'found' : 'lost'),
      (error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)),
    );
    return [...names, outcome].join(' ');
  };
  const { service } = first;
  assert.equal(await asked(open, service, found), 'older found');
  for (const none of ['14', '94']) {
    assert.equal(await asked(open, service, none, found), 'older newer found');
    assert.equal(await asked(open, service, none, '55'), 'older newer 55');
    assert.equal(await asked(open, service, '14', none), `older newer ${none}`);
  }
  for (const code of ['55', '75', '51']) assert.equal(await asked(open, service, code), `older ${code}`);
  // Where a wrong or locked PIN must look like an unknown code it is the same work.
  assert.equal(await asked(opaque, service, '14', '14'), 'older newer 14');
  assert.equal(await asked(opaque, service, '14', '55'), 'older newer 14');
  assert.equal(await asked(opaque, service, '55', '14'), 'older nobody 14');
  assert.equal(await asked(opaque, service, '75', '14'), 'older nobody 14');
  assert.equal(await asked(opaque, service, '14', '75'), 'older newer 14');
  // One that has not heard of the new key asks for it when it finds nothing, and begins anew.
  assert.equal(second.service.keys.inUse.length, 1);
  assert.equal(await asked(open, second.service, '14', '14', found), 'older older newer found');
  assert.equal(await asked(opaque, third.service, '55'), 'older 14');
  for (const each of [first, second, third]) await each.stop();
});
