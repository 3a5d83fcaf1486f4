import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { activations } from '../support/activations.ts';
import { UNKNOWN, wrong } from '../support/statement.ts';

const { bench, outcomeOf, outcomesOf, rowsOf } = activations();
let one: Context;
let other: Context;

before(async () => {
  await bench.product('CHANGES', 'USD', 2);
  [one, other] = [await bench.merchant(), await bench.merchant('OWN')];
});

describe('the reference of an activation', () => {
  test('replays the same request, and declines a different one', async () => {
    const [card, next] = await bench.cards(one, 2);
    const id = bench.id();
    const request = { by: one, card, value: 100_000, reference: 'ref', id };
    const float = await bench.floatOf(one);
    assert.equal(await outcomeOf(request), 'ok');
    const [again] = await rowsOf([{ ...request, id: bench.id() }], new Date(bench.now.getTime() + 1000));
    assert.deepEqual(
      [again?.outcome, again?.id, again?.occurred_at, again?.amount_minor],
      ['replay', id, bench.now, 10_000n / 10n],
    );
    const { id: _, ...same } = request;
    assert.equal(
      await outcomeOf({ by: one, serial: card.serial, value: 100_000, reference: 'ref' }),
      'replay',
    );
    assert.equal(await outcomeOf({ ...same, value: 100_100 }), '94');
    assert.equal(await outcomeOf({ ...same, card: next }), '94');
    assert.equal(await outcomeOf({ ...same, card: UNKNOWN }), '94');
    assert.equal(await outcomeOf({ ...same, card: wrong(card) }), '55');
    assert.equal(await outcomeOf({ ...same, by: other }), '41');
    assert.equal(await outcomeOf({ ...same, card: next, by: other }), 'ok');
    assert.equal(await outcomeOf({ by: one, card: next, value: 100_000, reference: id }), '41');
    assert.equal(await bench.floatOf(one), float - 1000n);
    await bench.query(`update claims set operation = 'redeem' where id = '${id}'`);
    assert.equal(await outcomeOf(same), '41');
  });

  test('replays the same request after its voucher, float and product have changed', async () => {
    const seller = await bench.merchant('CHANGES', 100_000n);
    const card = await bench.card(seller);
    const request = { by: seller, card, value: 10_000, reference: 'changes' };
    assert.equal(await outcomeOf(request), 'ok');
    await bench.query(
      "update products set min_value_minor = 5000, max_value_minor = 6000, on_sale = false where code = 'CHANGES'",
    );
    await bench.setFloat(seller, 'balance_minor = 0');
    for (const what of [
      "expires_at = '2029-01-01'",
      'blocked_at = now()',
      "closed = 'REPLACED', balance_minor = 0",
    ]) {
      await bench.setCard(card, what);
      assert.equal(await outcomeOf(request), 'replay', what);
    }
  });

  test('is replayed at its own time, beside new and declined requests of the call', async () => {
    const [first, second, third] = await bench.cards(one, 3);
    const at = (seconds: number) => new Date(bench.now.getTime() + seconds * 1000);
    const asked = { by: one, value: 10_000 };
    const [opened, next] = [
      { ...asked, card: first, reference: 'first' },
      { ...asked, card: second, reference: 'second' },
    ];
    assert.equal(await outcomeOf(opened), 'ok');
    assert.equal(await outcomeOf(next, at(1)), 'ok');
    const unknown = { ...asked, card: UNKNOWN, reference: 'unknown' };
    const id = bench.id();
    const rows = await rowsOf(
      [{ ...asked, card: third, reference: 'third', id }, next, unknown, opened],
      at(2),
    );
    assert.equal(rows[0]?.id, id);
    assert.deepEqual(
      rows.map(({ outcome, occurred_at }) => [outcome, occurred_at]),
      [
        ['ok', at(2)],
        ['replay', at(1)],
        ['14', null],
        ['replay', at(0)],
      ],
    );
  });

  test('that was claimed before is booked once, and never after its id was voided', async () => {
    const [card, next] = await bench.cards(await bench.merchant('LATER'), 2, { value: 25 });
    const [id, voided] = [bench.id(), bench.id()];
    await bench.query(`select void_transaction(0, ${next.serial}, '${voided}')`);
    const both = [
      { by: one, card, reference: 'claimed', id },
      { by: one, card: next, reference: 'taken over', id: voided },
    ];
    const outcomes = async () =>
      (await rowsOf(both, bench.now, true)).map(({ outcome, ...row }) => [outcome, row.id]);
    assert.deepEqual(await outcomes(), [
      ['ok', id],
      ['void', null],
    ]);
    assert.deepEqual(await outcomes(), [
      ['replay', id],
      ['void', null],
    ]);
    assert.deepEqual(await bench.ofCards([card, next], 'balance_minor'), ['2500', '0']);
  });

  test('of a request that emptied the float meanwhile is used', async () => {
    for (const [operation, outcome] of [
      ['activate', '94'],
      ['redeem', '50'],
    ] as const) {
      const buyer = await bench.merchant(undefined, 1000n);
      const card = await bench.card(buyer);
      const claimed = `
        insert into claims (merchant_id, operation, reference, id, serial_number, fingerprint)
        values (${buyer.merchant.id}, '${operation}', 'emptied', gen_random_uuid(), 1, '')`;
      const emptied = `update floats set balance_minor = 0 where merchant_id = ${buyer.merchant.id}`;
      const request = { by: buyer, card, value: 100_000, reference: 'emptied' };
      assert.equal(await bench.during([emptied, claimed], () => outcomeOf(request)), outcome);
    }
  });

  test('of another merchant does not matter if the float is empty', async () => {
    const poor = await bench.merchant(undefined, 1n);
    const [card, next] = await bench.cards(one, 2);
    const request = { value: 10_000, reference: 'of another' };
    assert.equal(await outcomeOf({ ...request, by: one, card }), 'ok');
    assert.equal(await outcomeOf({ ...request, by: poor, card: next }), '50');
  });

  test('makes a call that holds it twice fail', async () => {
    const cards = await bench.cards(one, 2);
    const float = await bench.floatOf(one);
    const both = cards.map((card) => ({ by: one, card, value: 10_000, reference: 'both' }));
    await assert.rejects(outcomesOf(both), { constraint: 'claims_pkey' });
    assert.equal(await bench.floatOf(one), float);
  });
});
