import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { ensureAccounts } from '../../src/ledger/journal.ts';
import { redemptions } from '../support/redemptions.ts';
import { UNKNOWN, wrong } from '../support/statement.ts';

const { bench, outcomeOf, rowsOf } = redemptions();
let one: Context;
let other: Context;

before(async () => {
  [one, other] = [await bench.merchant(), await bench.merchant('OWN')];
});

describe('an amount', () => {
  test('too fine for the voucher is declined after the PIN is checked', async () => {
    const card = await bench.card(one, 25);
    for (const amount of [1, 10]) {
      assert.equal(await outcomeOf(one, UNKNOWN, amount), '14');
      assert.equal(await outcomeOf(one, wrong(card), amount), '55');
      assert.equal(await outcomeOf(one, card, amount), '13');
    }
    assert.equal(await outcomeOf(one, card, 100), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2499');
  });

  test('is in units of the currency of the voucher', async () => {
    const [dinars, yen] = [await bench.merchant('DINAR'), await bench.merchant('YEN')];
    const [inDinar, inYen] = [await bench.card(dinars, 1.234), await bench.card(yen, 500)];
    assert.deepEqual(
      [await outcomeOf(dinars, inDinar, 10), await bench.ofCard(inDinar, 'balance_minor')],
      ['ok', '1233'],
    );
    assert.deepEqual(
      [await outcomeOf(yen, inYen, 4_990_000), await bench.ofCard(inYen, 'balance_minor')],
      ['ok', '1'],
    );
    assert.equal(await outcomeOf(yen, inYen, 5000), '13');
    assert.equal(await outcomeOf(yen, inYen, 10_001), '13');
  });

  test('may be the whole balance, and not one unit more', async () => {
    const card = await bench.card(one, 25);
    assert.equal(await outcomeOf(one, card, 250_100), '51');
    assert.equal(await outcomeOf(one, card, 249_900), 'ok');
    assert.equal(await outcomeOf(one, card, 100), 'ok');
    assert.equal(await outcomeOf(one, card, 100), '42');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '0');
  });

  test('needs a settlement account in the currency of the voucher', async () => {
    const dinars = await bench.merchant('DINAR');
    const card = await bench.card(dinars, 5);
    assert.equal(await outcomeOf(one, card, 10_000), 'account');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '5000');
    await ensureAccounts(one.service.db, one.merchant.id, 'KWD');
    assert.equal(await outcomeOf(one, card, 10_000), 'ok');
  });
});

describe('a voucher', () => {
  const states = [
    ['44', "closed = 'CANCELED', balance_minor = 0"],
    ['44', "closed = 'REPLACED', balance_minor = 0, blocked_at = now()"],
    ['43', "blocked_at = now(), expires_at = '2029-01-01'"],
    ['54', "expires_at = '2030-01-15T08:00:00Z'"],
    ['ok', "expires_at = '2030-01-15T08:00:00.001Z'"],
    ['40', 'activated_at = null, value_minor = null'],
    ['42', 'balance_minor = 0'],
    ['75', "pin_locked_until = '2030-01-15T08:00:00.001Z', closed = 'CANCELED', balance_minor = 0"],
    ['ok', "pin_locked_until = '2030-01-15T08:00:00Z'"],
  ] as const;

  test('is refused for its state only with the right PIN', async () => {
    for (const [outcome, what] of states) {
      const card = await bench.card(one, 25);
      await bench.setCard(card, what);
      assert.equal(await outcomeOf(one, card, 10_000), outcome, what);
      if (outcome !== '75') assert.equal(await outcomeOf(one, wrong(card), 10_000), '55', what);
    }
  });

  test('of a batch that is not complete is not found', async () => {
    const card = await bench.card(one, 25);
    await bench.query(
      `
        update batches set status = 'CANCELED' where id = (select batch_id from vouchers
        where serial_number = ${card.serial})`,
    );
    assert.equal(await outcomeOf(one, card, 10_000), '14');
  });

  test('of scope issuer is accepted only by its issuer', async () => {
    const card = await bench.card(other, 25);
    assert.equal(await outcomeOf(one, card, 10_000), '47');
    assert.equal(await outcomeOf(other, card, 10_000), 'ok');
  });
});

describe('the requests of a call', () => {
  test('are replayed at their own time, beside new and declined ones', async () => {
    const cards = await bench.cards(one, 3, { value: 25 });
    const at = (seconds: number) => new Date(bench.now.getTime() + seconds * 1000);
    const [first, second, third] = cards.map((card, index) => ({
      ...{ by: one, card, amount: 10_000, reference: `of a call ${index}` },
    }));
    assert.ok(first && second && third);
    await rowsOf([first], at(0));
    await rowsOf([second], at(1));
    const unknown = { ...first, card: UNKNOWN, reference: 'of nobody' };
    const rows = await rowsOf([third, second, unknown, first], at(2));
    assert.deepEqual(
      rows.map(({ outcome, occurred_at }) => [outcome, occurred_at]),
      [
        ['ok', at(2)],
        ['replay', at(1)],
        ['14', null],
        ['replay', at(0)],
      ],
    );
    assert.deepEqual(await bench.ofCards(cards, 'balance_minor'), ['2400', '2400', '2400']);
  });

  test('whose references were claimed before are booked once, and never after their id was voided', async () => {
    const [card, next] = await bench.cards(one, 2, { value: 25 });
    const [id, voided] = [bench.id(), bench.id()];
    const request = { by: one, card, amount: 10_000, reference: 'claimed', id };
    const refused = { by: one, card: next, amount: 10_000, reference: 'taken over', id: voided };
    await bench.query(`select void_transaction(0, ${next.serial}, '${voided}')`);
    const outcomes = async () => {
      const rows = await rowsOf([request, refused], bench.now, true);
      return rows.map(({ outcome, ...row }) => [outcome, row.id]);
    };
    assert.deepEqual(await outcomes(), [
      ['ok', id],
      ['void', null],
    ]);
    assert.deepEqual(await outcomes(), [
      ['replay', id],
      ['void', null],
    ]);
    assert.deepEqual(await bench.ofCards([card, next], 'balance_minor'), ['2400', '2500']);
  });
});
