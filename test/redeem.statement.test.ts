import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Context } from '../src/context.ts';
import { ensureAccounts } from '../src/ledger/accounts.ts';
import { Redemptions } from './redemptions.ts';
import { type Bench, type Card, UNKNOWN, wrong } from './statement.ts';

let bench: Bench;
let one: Context;
let other: Context;
let statement: Redemptions;
const rowsOf: Redemptions['rowsOf'] = (...asked) => statement.rowsOf(...asked);
const outcomesOf: Redemptions['outcomesOf'] = (...asked) => statement.outcomesOf(...asked);
const outcomeOf: Redemptions['outcomeOf'] = (...asked) => statement.outcomeOf(...asked);

before(async () => {
  statement = await Redemptions.open();
  bench = statement.bench;
  [one, other] = [await bench.merchant(), await bench.merchant('OWN')];
});
after(() => bench.close());

test('books each of a list once: the journal, the balance and the version say the same', async () => {
  const [first, second] = await bench.cards(one, 2, { value: 25 });
  assert.ok(first && second);
  const version = Number(await bench.ofCard(first, 'version'));
  const ids = [bench.id(), bench.id()] as const;
  const rows = await rowsOf([
    { by: one, card: first, amount: 101_000, reference: 'a1', id: ids[0] },
    { by: other, card: second, amount: 250_000, id: ids[1] },
  ]);
  assert.deepEqual(
    rows.map(({ outcome, id, occurred_at, amount_minor }) => [outcome, id, occurred_at, amount_minor]),
    [
      ['ok', ids[0], bench.now, 1010n],
      ['ok', ids[1], bench.now, 2500n],
    ],
  );
  const entries = await bench.tell(
    `select j.id, j.kind, j.debit_account, a.kind as credited, a.merchant_id as to, j.amount_minor, j.currency, j.merchant_id,
       j.serial_number, j.operation, j.reference, j.batch_id, j.original_id, j.occurred_at
     from journal j join accounts a on a.id = j.credit_account and a.currency = j.currency
     where j.id in ('${ids[0]}', '${ids[1]}') order by j.id`,
  );
  const common = { kind: 'REDEMPTION', credited: 'SETTLEMENT', currency: 'USD', operation: 'redeem', batch_id: null };
  const rest = { original_id: null, occurred_at: bench.now };
  const entry = (id: string, by: Context, { serial }: Card, amount: bigint, reference: string | null) => ({
    ...{ id, ...common, debit_account: serial, to: by.merchant.id, amount_minor: amount },
    ...{ merchant_id: by.merchant.id, serial_number: serial, reference, ...rest },
  });
  assert.deepEqual(entries, [entry(ids[0], one, first, 1010n, 'a1'), entry(ids[1], other, second, 2500n, null)]);
  assert.deepEqual(
    [await bench.ofCard(first, 'balance_minor'), await bench.ofCard(second, 'balance_minor')],
    ['1490', '0'],
  );
  assert.equal(Number(await bench.ofCard(first, 'version')), version + 1);
});

test('takes a voucher once in a list: the first goes through, whatever comes of it, and the others come again', async () => {
  const [card, next] = await bench.cards(one, 2, { value: 25 });
  assert.ok(card && next);
  const ask = (each: Card, amount: number) => ({ by: one, card: each, amount });
  assert.deepEqual(await outcomesOf([ask(card, 10_000), ask(next, 10_000), ask(card, 10_000)]), ['ok', 'ok', 'again']);
  assert.deepEqual(await outcomesOf([ask(wrong(card), 10_000), ask(card, 10_000)]), ['55', 'again']);
  assert.equal(await bench.ofCard(card, 'balance_minor'), '2400');
});

describe('a reference', () => {
  test('is answered as before for the same request, and refused for another', async () => {
    const [card, next] = await bench.cards(one, 2, { value: 25 });
    assert.ok(card && next);
    const [first] = await rowsOf([{ by: one, card, amount: 100_000, reference: 'ref' }]);
    const later = new Date(bench.now.getTime() + 1000);
    const [again] = await rowsOf([{ by: one, card, amount: 100_000, reference: 'ref' }], later);
    assert.deepEqual(
      [again?.outcome, again?.id, again?.occurred_at, again?.amount_minor],
      ['replay', first?.id, bench.now, 1000n],
    );
    assert.equal(await outcomeOf(one, card, 100_100, 'ref'), '94');
    assert.equal(await outcomeOf(one, next, 100_000, 'ref'), '94');
    assert.equal(await outcomeOf(one, UNKNOWN, 100_000, 'ref'), '94');
    // Finer than the voucher's currency, though not than every currency there is.
    assert.equal(await outcomeOf(one, card, 100_050, 'ref'), '94');
    assert.equal(await outcomeOf(other, card, 100_000, 'ref'), 'ok');
    assert.equal(await outcomeOf(one, wrong(card), 100_000, 'ref'), '55');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '500');
  });

  test('may be the id of a redemption without one, and is none where it belongs to another operation', async () => {
    const card = await bench.card(one, 25);
    const id = bench.id();
    assert.deepEqual(await outcomesOf([{ by: one, card, amount: 10_000, id }]), ['ok']);
    assert.equal(await outcomeOf(one, card, 10_000, id), 'replay');
    await bench.tell(`update journal set operation = 'activate' where id = '${id}'`);
    assert.equal(await outcomeOf(one, card, 10_000, id), 'ok');
  });

  test('of two redemptions in a list goes to one of them', async () => {
    const cards = await bench.cards(one, 2, { value: 25 });
    const outcomes = await outcomesOf(cards.map((card) => ({ by: one, card, amount: 10_000, reference: 'both' })));
    assert.deepEqual(outcomes.sort(), ['again', 'ok']);
    const balances = await Promise.all(cards.map((card) => bench.ofCard(card, 'balance_minor')));
    assert.deepEqual(balances.sort(), ['2400', '2500']);
  });
});

describe('an amount', () => {
  test('that is too fine for every currency is told before the voucher, and one too fine for it after the PIN', async () => {
    const card = await bench.card(one, 25);
    for (const each of [card, wrong(card), UNKNOWN]) assert.equal(await outcomeOf(one, each, 1), '13');
    assert.equal(await bench.guardOf(card), '0 open');
    assert.equal(await outcomeOf(one, UNKNOWN, 10), '14');
    assert.equal(await outcomeOf(one, wrong(card), 10), '55');
    assert.equal(await outcomeOf(one, card, 10), '13');
    assert.equal(await outcomeOf(one, card, 100), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2499');
  });

  test('is in the units of the voucher', async () => {
    const [dinars, yen] = [await bench.merchant('DINAR'), await bench.merchant('YEN')];
    const [inDinar, inYen] = [await bench.card(dinars, 1.234), await bench.card(yen, 500)];
    assert.deepEqual(
      [await outcomeOf(dinars, inDinar, 10), await bench.ofCard(inDinar, 'balance_minor')],
      ['ok', '1233'],
    );
    assert.deepEqual([await outcomeOf(yen, inYen, 4_990_000), await bench.ofCard(inYen, 'balance_minor')], ['ok', '1']);
    assert.equal(await outcomeOf(yen, inYen, 5000), '13');
    assert.equal(await outcomeOf(yen, inYen, 10_001), '13');
  });

  test('may be the whole balance, and not a unit more', async () => {
    const card = await bench.card(one, 25);
    assert.equal(await outcomeOf(one, card, 250_100), '51');
    assert.equal(await outcomeOf(one, card, 249_900), 'ok');
    assert.equal(await outcomeOf(one, card, 100), 'ok');
    assert.equal(await outcomeOf(one, card, 100), '42');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '0');
  });

  test('needs an account where it is settled', async () => {
    const dinars = await bench.merchant('DINAR');
    const card = await bench.card(dinars, 5);
    assert.equal(await outcomeOf(one, card, 10_000), 'account');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '5000');
    await ensureAccounts(one.service.db, one.merchant.id, 'KWD');
    assert.equal(await outcomeOf(one, card, 10_000), 'ok');
  });

  test('is settled on the account for it, wherever that stands', async () => {
    const merchant = await bench.merchant();
    const card = await bench.card(merchant, 25);
    const own = `merchant_id = ${merchant.merchant.id} and kind = 'SETTLEMENT'`;
    const kept = () => bench.tell<{ id: bigint }>(`select id from accounts where ${own}`);
    for (const what of ['float', 'settlement']) {
      await bench.tell(
        `update accounts set low_minor = 1 where merchant_id = ${merchant.merchant.id} and kind = '${what.toUpperCase()}'`,
      );
      const id = bench.id();
      await outcomesOf([{ by: merchant, card, amount: 10_000, id }]);
      assert.deepEqual(await bench.tell(`select credit_account as id from journal where id = '${id}'`), await kept());
    }
  });
});

describe('a voucher', () => {
  const states = [
    ['44', "closed = 'CANCELED'"],
    ['44', "closed = 'REPLACED', blocked_at = now()"],
    ['43', "blocked_at = now(), expires_at = '2029-01-01'"],
    ['54', "expires_at = '2030-01-15T08:00:00Z'"],
    ['ok', "expires_at = '2030-01-15T08:00:00.001Z'"],
    ['40', 'activated_at = null, value_minor = null'],
    ['42', 'balance_minor = 0'],
    ['75', "pin_locked_until = '2030-01-15T08:00:00.001Z', closed = 'CANCELED'"],
    ['ok', "pin_locked_until = '2030-01-15T08:00:00Z'"],
  ] as const;

  test('is refused for what it is, to who knows its PIN', async () => {
    for (const [outcome, what] of states) {
      const card = await bench.card(one, 25);
      await bench.setCard(card, what);
      assert.equal(await outcomeOf(one, card, 10_000), outcome, what);
      if (outcome !== '75') assert.equal(await outcomeOf(one, wrong(card), 10_000), '55', what);
    }
  });

  test('of a batch that is not complete does not exist', async () => {
    const card = await bench.card(one, 25);
    await bench.tell(
      `update batches set status = 'CANCELED' where id = (select batch_id from vouchers where serial_number = ${card.serial})`,
    );
    assert.equal(await outcomeOf(one, card, 10_000), '14');
  });

  test('of scope issuer is accepted by the issuer alone', async () => {
    const card = await bench.card(other, 25);
    assert.equal(await outcomeOf(one, card, 10_000), '47');
    assert.equal(await outcomeOf(other, card, 10_000), 'ok');
  });
});

describe('wrong PINs', () => {
  test('are counted, and lock at the fifth, the tenth and the fifteenth', async () => {
    const card = await bench.card(one, 25);
    await bench.countsWrongPins(card, () => outcomeOf(one, wrong(card), 10_000));
    assert.equal(await outcomeOf(one, card, 10_000), '75');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2500');
  });

  test('are forgotten with the right one, whatever comes of the redemption once it was looked at', async () => {
    const card = await bench.card(one, 25);
    await outcomeOf(one, card, 10_000, 'guarded');
    const guarded = async (amount: number, reference?: string, wrongPins = 3) => {
      await bench.setCard(card, `wrong_pins = ${wrongPins}, pin_locked_until = '2030-01-15T07:00Z'`);
      const version = Number(await bench.ofCard(card, 'version'));
      const outcome = await outcomeOf(one, card, amount, reference);
      const more = Number(await bench.ofCard(card, 'version')) - version;
      return [outcome, await bench.guardOf(card), more];
    };
    assert.deepEqual(await guarded(10_000), ['ok', '0 open', 1]);
    assert.deepEqual(await guarded(10_000_000), ['51', '0 open', 1]);
    assert.deepEqual(await guarded(10_000_000, undefined, 1), ['51', '0 open', 1]);
    assert.deepEqual(await guarded(10), ['13', '0 open', 1]);
    assert.deepEqual(await guarded(10_000, 'guarded'), ['replay', '0 open', 1]);
    // In these it was not looked at.
    assert.deepEqual(await guarded(1), ['13', '3 -60', 0]);
    assert.deepEqual(await guarded(20_000, 'guarded'), ['94', '3 -60', 0]);
    await bench.setCard(card, "wrong_pins = 5, pin_locked_until = '2030-01-15T09:00Z'");
    assert.equal(await outcomeOf(one, card, 10_000), '75');
    assert.equal(await bench.guardOf(card), '5 60');
    // Nothing changes where there is nothing to forget.
    await bench.setCard(card, 'wrong_pins = 0, pin_locked_until = null');
    const version = await bench.ofCard(card, 'version');
    assert.equal(await outcomeOf(one, card, 10_000_000), '51');
    assert.equal(await bench.ofCard(card, 'version'), version);
  });

  test('are not forgotten by one that comes again', async () => {
    const card = await bench.card(one, 25);
    await bench.setCard(card, 'wrong_pins = 3');
    const asked = { by: one, card, amount: 10_000 };
    assert.deepEqual(await outcomesOf([{ ...asked, card: wrong(card) }, asked]), ['55', 'again']);
    assert.equal(await bench.guardOf(card), '4 open');
    const [next] = await bench.cards(one, 1, { value: 25 });
    assert.ok(next);
    await outcomeOf(one, next, 10_000, 'taken');
    await bench.setCard(next, 'wrong_pins = 3');
    const twice = { by: one, card: next, amount: 20_000 };
    assert.deepEqual(await outcomesOf([{ ...twice, reference: 'taken' }, twice]), ['94', 'again']);
    assert.equal(await bench.guardOf(next), '3 open');
  });

  test('are told and counted at once, also where the voucher has changed since the snapshot', async () => {
    const card = await bench.card(one, 25);
    const guess = () => outcomeOf(one, wrong(card), 10_000, 'guess');
    assert.equal(await bench.behind(card, 'balance_minor = 5', guess), '55');
    assert.equal(await bench.guardOf(card), '1 open');
  });
});

test('a refusal of what has changed since the snapshot is told only where there is no reference', async () => {
  const card = await bench.card(one, 25);
  const [named, unnamed, more] = [
    await bench.behind(card, 'balance_minor = 0', () => outcomeOf(one, card, 10_000, 'raced')),
    await bench.behind(card, 'balance_minor = 0', () => outcomeOf(one, card, 10_000)),
    await bench.behind(card, 'balance_minor = 5', () => outcomeOf(one, card, 10_000, 'raced')),
  ];
  assert.deepEqual([named, unnamed, more], ['again', '42', 'again']);
  for (const what of ["closed = 'CANCELED'", 'blocked_at = now()', "expires_at = '2029-01-01'"]) {
    const each = await bench.card(one, 25);
    assert.equal(await bench.behind(each, what, () => outcomeOf(one, each, 10_000, 'raced')), 'again', what);
  }
  const inactive = await bench.card(one);
  assert.equal(
    await bench.behind(inactive, 'wrong_pins = 0', () => outcomeOf(one, inactive, 10_000, 'raced')),
    'again',
  );
  const issued = await bench.card(other, 25);
  assert.equal(await bench.behind(issued, 'wrong_pins = 0', () => outcomeOf(one, issued, 10_000, 'raced')), 'again');
  assert.equal(await outcomeOf(one, issued, 10_000, 'raced'), '47');
  // What goes through goes through on the newest row.
  await bench.setCard(card, 'balance_minor = 2500');
  assert.equal(await bench.behind(card, 'balance_minor = 2000', () => outcomeOf(one, card, 10_000, 'spent')), 'ok');
  assert.equal(await bench.ofCard(card, 'balance_minor'), '1900');
});

test('is told to the endpoints that want it, and to no other', async () => {
  const { merchant, isTold } = await bench.listened('voucher.redeemed');
  const card = await bench.card(merchant, 25);
  const id = bench.id();
  assert.deepEqual(await outcomesOf([{ by: merchant, card, amount: 10_000, id }]), ['ok']);
  await outcomeOf(merchant, card, 10_000_000);
  await isTold(id);
});
