import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Context, Service } from '../../src/context.ts';
import { newRingKey } from '../../src/keyring/file.ts';
import { Refusal, type RefusalCode } from '../../src/refusal.ts';
import { beginRotation } from '../../src/rotation/rotate.ts';
import { lookUp } from '../../src/vouchers/look-up.ts';
import { asOperator, startTestService } from '../support/harness.ts';
import { Bench } from '../support/statement.ts';

const bench = Bench.ofTests();
let open: Context;
let opaque: Context;
const voucher = { code: '123456789012', pin: '1234' };

before(async () => {
  open = await bench.merchant();
  opaque = { ...open, merchant: { ...open.merchant, opaque: true } };
});

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

test('unknown codes and wrong PINs count as guesses, locked PINs only if opaque', async () => {
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

test('an opaque merchant gets one delayed answer for unknown codes, wrong and locked PINs', async () => {
  for (const code of ['14', '55', '75']) {
    // On any machine, the shorter of two timers ends first if it began first.
    const shorter = sleep(40, 'nothing yet');
    const answer = refused(opaque, async () => code);
    assert.equal(await Promise.race([answer, shorter]), 'nothing yet');
    assert.equal(await answer, '14');
    assert.equal(await refused(opaque, () => sleep(120, code)), '14');
  }
  assert.equal(await refused(open, async () => '75'), '75');
  // Other states are reported only after a right PIN.
  for (const code of ['44', '43', '54', '40', '42', '51'])
    assert.equal(await refused(opaque, async () => code), code);
});

test('a voucher that is found is returned at once, and no timer is left', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const found = { found: true };
  const count = timers();
  for (const context of [open, opaque])
    assert.equal(await lookUp(context, voucher, async () => found), found);
  assert.equal(timers(), count);
});

test('a key may run more concurrent look-ups after right answers, and fewer after a guess', async () => {
  const context = await bench.merchant();
  const begun: ((answer: object | RefusalCode) => void)[] = [];
  const lookUps: Promise<unknown>[] = [];
  const ask = (count: number) => {
    for (let index = 0; index < count; index++) {
      const begin = () => new Promise<object | RefusalCode>((resolve) => begun.push(resolve));
      lookUps.push(
        lookUp(context, voucher, begin as Parameters<typeof lookUp>[2]).catch((error: unknown) => error),
      );
    }
  };
  let next = 0;
  /** Answers the oldest of the look-ups that have begun. @returns how many more have begun after that */
  const answer = async (count: number, outcome: object | RefusalCode) => {
    const before = begun.length;
    const answered = lookUps.slice(next, next + count);
    for (let index = 0; index < count; index++) begun[next++]?.(outcome);
    await Promise.all(answered);
    await setImmediate();
    return begun.length - before;
  };
  ask(300);
  await setImmediate();
  assert.equal(begun.length, 16);
  // A right answer makes room for two look-ups, a refusal that is no guess for one.
  assert.equal(await answer(16, { found: true }), 32);
  assert.equal(await answer(8, '75'), 8);
  assert.equal(await answer(32, { found: true }), 64);
  // A guess reduces 64 concurrent look-ups to 16: 48 end before another one begins.
  assert.equal(await answer(1, '55'), 0);
  assert.equal(await answer(47, '75'), 0);
  assert.equal(await answer(3, '75'), 3);
  while (next < lookUps.length) await answer(begun.length - next, '75');
  await Promise.all(lookUps);
});

test('during a rotation, a voucher is resolved by the older key, then by the newer', async () => {
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
    return 'random';
  };
  const found = { found: true };
  /** The keys by which a voucher is resolved, given their answers, and the outcome. */
  const resolved = async (context: Context, service: Service, ...answers: (string | object)[]) => {
    const names: string[] = [];
    const outcome = await lookUp({ ...context, service }, voucher, async (each) => {
      names.push(name(each));
      return (answers[names.length - 1] ?? assert.fail('one look-up too many')) as RefusalCode;
    }).then(
      (answer) => (answer === found ? 'found' : 'lost'),
      (error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)),
    );
    return [...names, outcome].join(' ');
  };
  const { service } = first;
  assert.equal(await resolved(open, service, found), 'older found');
  for (const none of ['14', '94']) {
    assert.equal(await resolved(open, service, none, found), 'older newer found');
    assert.equal(await resolved(open, service, none, '55'), 'older newer 55');
    assert.equal(await resolved(open, service, '14', none), `older newer ${none}`);
  }
  for (const code of ['55', '75', '51']) assert.equal(await resolved(open, service, code), `older ${code}`);
  // For an opaque merchant, a wrong or locked PIN costs the same work as an unknown code.
  assert.equal(await resolved(opaque, service, '14', '14'), 'older newer 14');
  assert.equal(await resolved(opaque, service, '14', '55'), 'older newer 14');
  assert.equal(await resolved(opaque, service, '55', '14'), 'older random 14');
  assert.equal(await resolved(opaque, service, '75', '14'), 'older random 14');
  assert.equal(await resolved(opaque, service, '14', '75'), 'older newer 14');
  // A process that does not know the new key reads the keys when it finds nothing, and starts again.
  assert.equal(second.service.keys.inUse.length, 1);
  assert.equal(await resolved(open, second.service, '14', '14', found), 'older older newer found');
  assert.equal(await resolved(opaque, third.service, '55'), 'older 14');
  for (const each of [first, second, third]) await each.stop();
});
