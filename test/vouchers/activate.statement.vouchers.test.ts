import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { type Activation, activations } from '../support/activations.ts';
import { UNKNOWN, wrong } from '../support/statement.ts';

const { bench, outcomeOf, outcomesOf } = activations();
let one: Context;
let other: Context;

before(async () => {
  [one, other] = [await bench.merchant(), await bench.merchant('OWN')];
});

describe('a voucher to activate', () => {
  test('is declined for its state: by code if the PIN is right, by serial number at its merchant', async () => {
    for (const [code, what] of [
      ['44', "closed = 'CANCELED', balance_minor = 0, blocked_at = now()"],
      ['43', "blocked_at = now(), expires_at = '2029-01-01'"],
      ['54', "expires_at = '2030-01-15T08:00:00Z', activated_at = now(), value_minor = 1, payer_id = 1"],
      ['41', 'activated_at = now(), value_minor = 1, payer_id = 1'],
      ['ok', "expires_at = '2030-01-15T08:00:00.001Z'"],
    ] as const) {
      const [card, next] = await bench.cards(one, 2);
      for (const each of [card, next]) await bench.setCard(each, what);
      assert.equal(await outcomeOf({ by: one, card: wrong(card) }), '55', what);
      assert.equal(await outcomeOf({ by: one, card }), code, what);
      assert.equal(await outcomeOf({ by: other, serial: next.serial }), '14', what);
      assert.equal(await outcomeOf({ by: one, serial: next.serial }), code, what);
    }
    assert.equal(await outcomeOf({ by: one, card: UNKNOWN }), '14');
    assert.equal(await outcomeOf({ by: one, serial: 10_999_999_999n }), '14');
  });

  test('is unknown if its batch is not complete', async () => {
    const card = await bench.card(one);
    const batch = `(select batch_id from vouchers where serial_number = ${card.serial})`;
    await bench.query(`update batches set status = 'CANCELED' where id = ${batch}`);
    assert.deepEqual(
      [await outcomeOf({ by: one, card }), await outcomeOf({ by: one, serial: card.serial })],
      ['14', '14'],
    );
  });

  test('with scope issuer can be activated by its issuer only', async () => {
    const card = await bench.card(other);
    assert.equal(await outcomeOf({ by: one, card, value: 10_000 }), '47');
    assert.equal(await outcomeOf({ by: other, card, value: 10_000 }), 'ok');
  });

  test('that expires within five minutes gets a due date of its own', async () => {
    const [soon, last, later, known, bystander] = await bench.cards(one, 5);
    const dueAfter = async (card: typeof soon, seconds: number) => {
      await bench.expiresIn(card, seconds);
      assert.equal(await outcomeOf({ by: one, card, value: 100 }), 'ok');
      return bench.dueOf(card);
    };
    assert.equal(await outcomeOf({ by: one, card: bystander }), 'ok');
    await bench.expiresIn(bystander, 240);
    assert.deepEqual(
      [await dueAfter(soon, 240), await dueAfter(last, 300), await dueAfter(later, 300.001)],
      ['240', '300', null],
    );
    await bench.query(`insert into voucher_expiries (serial_number, due_at)
      values (${known.serial}, '${bench.now.toISOString()}')`);
    assert.equal(await dueAfter(known, 240), '0');
    assert.equal(await outcomeOf({ by: one, card: bystander }), '41');
    const [booked, blocked, unhurried] = await bench.cards(one, 3);
    for (const card of [booked, blocked]) await bench.expiresIn(card, 240);
    await bench.setCard(blocked, 'blocked_at = now()');
    const all = [booked, blocked, unhurried].map((card) => ({ by: one, card }));
    assert.deepEqual(await outcomesOf(all), ['ok', '43', 'ok']);
    assert.equal(await bench.dueOf(booked), '240');
    for (const card of [blocked, unhurried, bystander]) assert.equal(await bench.dueOf(card), null);
  });

  test('makes a call that holds it twice fail, by code or by serial number', async () => {
    const [card, next] = await bench.cards(one, 2);
    const value = 10_000;
    const twice = /rows of vouchers were written instead of/;
    const [bySerial, byCode] = [
      { by: one, serial: card.serial, value },
      { by: one, card, value },
    ];
    const other = { by: one, card: next, value };
    for (const first of [bySerial, byCode]) await assert.rejects(outcomesOf([first, other, byCode]), twice);
    await assert.rejects(outcomesOf([{ by: one, card: wrong(card) }, byCode]), twice);
    for (const each of [card, next])
      assert.deepEqual(
        [await bench.ofCard(each, 'activated_at'), await bench.guardOf(each)],
        [null, '0 open'],
      );
    const unknown = [UNKNOWN, { ...UNKNOWN, codeKey: 'a'.repeat(32) }].map((each) => ({
      by: one,
      card: each,
    }));
    assert.deepEqual(await outcomesOf([...unknown, other]), ['14', '14', 'ok']);
  });
});

describe('wrong PINs in activations', () => {
  test('lock the voucher at the fifth, the tenth and the fifteenth', async () => {
    const card = await bench.card(one);
    await bench.countsWrongPins(card, () => outcomeOf({ by: one, card: wrong(card) }));
    assert.equal(await outcomeOf({ by: one, card }), '75');
    // An activation by serial number has no PIN: it neither checks nor clears the lock.
    assert.equal(await outcomeOf({ by: one, serial: card.serial, value: 10_000 }), 'ok');
    assert.equal(await bench.guardOf(card), '15 Infinity');
    const [next] = await bench.cards(one, 1);
    await bench.setCard(next, "wrong_pins = 5, pin_locked_until = '2030-01-15T09:00Z'");
    assert.equal(await outcomeOf({ by: one, serial: next.serial }), 'ok');
    assert.equal(await bench.guardOf(next), '5 60');
    await bench.setCard(card, "pin_locked_until = '2030-01-15T08:00Z'");
    assert.equal(await outcomeOf({ by: one, card }), '41');
  });

  test('are reset by the right PIN once it is checked, even if the activation is declined', async () => {
    const guarded = async (request: Omit<Activation, 'by'>, what = 'wrong_pins = 3') => {
      const card = request.card ?? assert.fail();
      await bench.setCard(card, what);
      const place = await bench.placeOf(card);
      const outcome = await outcomeOf({ by: one, ...request });
      return [outcome, await bench.guardOf(card), (await bench.placeOf(card)) !== place];
    };
    const [card, next] = await bench.cards(one, 2);
    assert.deepEqual(await guarded({ card, value: 10 }), ['13', '0 open', true]);
    assert.deepEqual(await guarded({ card, value: 100_000_000_000 }), ['61', '0 open', true]);
    assert.deepEqual(await guarded({ card, value: 1_000_000, reference: 'guarded' }), ['ok', '0 open', true]);
    assert.deepEqual(await guarded({ card, value: 1_000_000, reference: 'guarded' }), [
      'replay',
      '0 open',
      true,
    ]);
    assert.deepEqual(await guarded({ card }), ['41', '0 open', true]);
    assert.deepEqual(await guarded({ card }, 'wrong_pins = 1'), ['41', '0 open', true]);
    assert.deepEqual(await guarded({ card }, 'wrong_pins = 0'), ['41', '0 open', false]);
    assert.deepEqual(await guarded({ card: next, value: 1_000_000, reference: 'guarded' }), [
      '94',
      '3 open',
      false,
    ]);
  });
});

test('an activation that waited for a voucher decides on its new state, with or without a reference', async () => {
  for (const [outcome, what] of [
    ['44', "closed = 'CANCELED', balance_minor = 0"],
    ['43', 'blocked_at = now()'],
    ['54', "expires_at = '2029-01-01'"],
    ['41', 'activated_at = now(), value_minor = 1, payer_id = 1'],
    ['75', "pin_locked_until = '2030-01-15T08:01Z'"],
  ] as const) {
    for (const reference of [undefined, `raced ${what}`]) {
      const card = await bench.card(one);
      const request = { by: one, card, ...(reference && { reference }) };
      assert.equal(await bench.behind(card, what, () => outcomeOf(request)), outcome, what);
    }
  }
  const guessed = await bench.card(one);
  const guess = () => outcomeOf({ by: one, card: wrong(guessed), reference: 'raced' });
  assert.equal(await bench.behind(guessed, 'balance_minor = 0', guess), '55');
  assert.equal(await bench.guardOf(guessed), '1 open');
  // A voucher that was sealed again meanwhile is no longer found by this key.
  const sealed = `code_key = '${'9'.repeat(32)}'`;
  assert.equal(await bench.behind(guessed, sealed, () => outcomeOf({ by: one, card: guessed })), '14');
});

test('an activation notifies the endpoints that subscribe to it, and no others', async () => {
  const { merchant, isAnnounced } = await bench.subscribed('voucher.activated');
  const card = await bench.card(merchant);
  const id = bench.id();
  assert.equal(await outcomeOf({ by: merchant, card, value: 10_000, id }), 'ok');
  await outcomeOf({ by: merchant, card, value: 10_000 });
  await isAnnounced(id);
});
