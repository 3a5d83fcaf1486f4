import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../src/context.ts';
import { Refusal } from '../src/refusal.ts';
import { lookUp } from '../src/vouchers/look-up.ts';
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
  const [row] = await bench.tell<{ guesses: number }>('select coalesce(sum(guesses), 0)::int as guesses from key_days');
  return row?.guesses;
};

const refused = (context: Context, ask: () => Promise<object | string>) =>
  lookUp(context, voucher, ask as Parameters<typeof lookUp>[2]).then(
    () => assert.fail('it was not refused'),
    (error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)),
  );

test('an unknown code and a wrong PIN are guesses, and any other refusal is none', async () => {
  for (const [index, code] of ['14', '55'].entries()) {
    assert.equal(await refused(open, async () => code), code);
    assert.equal(await guesses(), index + 1);
  }
  for (const code of ['75', '94', '51']) assert.equal(await refused(open, async () => code), code);
  assert.equal(await guesses(), 2);
});

test('an opaque merchant is told the same of both, however long either takes to be found out', async () => {
  for (const code of ['14', '55']) {
    assert.equal(await refused(opaque, async () => code), '14');
    assert.equal(await refused(opaque, () => sleep(120, code)), '14');
  }
  assert.equal(await refused(opaque, async () => '75'), '75');
});

test('what is found is told at once, and nothing is left behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const found = { found: true };
  const count = timers();
  for (const context of [open, opaque]) assert.equal(await lookUp(context, voucher, async () => found), found);
  assert.equal(timers(), count);
});
