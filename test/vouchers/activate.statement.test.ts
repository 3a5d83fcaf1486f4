import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { ensureAccounts } from '../../src/ledger/journal.ts';
import { activations } from '../support/activations.ts';
import { type Card, UNKNOWN, wrong } from '../support/statement.ts';

const { bench, outcomeOf, outcomesOf, rowsOf } = activations();
let one: Context;
let other: Context;

before(async () => {
  await bench.product('CHANGES', 'USD', 2);
  [one, other] = [await bench.merchant(), await bench.merchant('OWN')];
});

const entryOf = async (id: string) =>
  (
    await bench.query<object>(
      `
        select j.kind, coalesce(a.kind::text, 'batch ' || j.debit_account - 5000000000) as debited,
          a.merchant_id as from, j.credit_account, j.amount_minor, j.currency, j.merchant_id,
          j.serial_number, j.reference, j.batch_id, j.original_id, j.occurred_at
        from journal j left join accounts a on a.id = j.debit_account where j.id = '${id}'`,
    )
  )[0];

describe('an activation', () => {
  test('in a batch without a value debits the float by the requested value, or by 5000', async () => {
    const [first, second] = await bench.cards(one, 2);
    const before = await bench.floatOf(one);
    const [id, next] = [bench.id(), bench.id()];
    const rows = await rowsOf([
      { by: one, card: first, value: 125_000, reference: 'act', id },
      { by: one, serial: second.serial, id: next },
    ]);
    assert.deepEqual(
      rows.map(({ outcome, amount_minor }) => [outcome, amount_minor]),
      [
        ['ok', 1250n],
        ['ok', 500_000n],
      ],
    );
    assert.equal(await bench.floatOf(one), before - 501_250n);
    assert.deepEqual(await entryOf(id), {
      ...{
        kind: 'ACTIVATION',
        debited: 'FLOAT',
        from: one.merchant.id,
        credit_account: first.serial,
        amount_minor: 1250n,
      },
      ...{ currency: 'USD', merchant_id: one.merchant.id, serial_number: first.serial },
      ...{ reference: 'act', batch_id: null, original_id: null, occurred_at: bench.now },
    });
    assert.equal(
      await bench.ofCard(
        first,
        "value_minor || ' ' || balance_minor || ' ' || (activated_at = '2030-01-15T08:00Z')::text",
      ),
      '1250 1250 true',
    );
    assert.equal(await bench.ofCard(second, 'balance_minor'), '500000');
  });

  test('in a batch with a value debits the reserve of the batch, and accepts no other value', async () => {
    const seller = await bench.merchant('LATER');
    const [first, second] = await bench.cards(seller, 2, { value: 25 });
    const before = await bench.floatOf(seller);
    const id = bench.id();
    for (const value of [240_000, 250_050, 260_000]) {
      assert.equal(await outcomeOf({ by: seller, serial: first.serial, value }), '13');
      assert.equal(await outcomeOf({ by: seller, card: first, value }), '13');
      assert.equal(await outcomeOf({ by: seller, card: wrong(first), value }), '55');
    }
    assert.equal(await outcomeOf({ by: seller, card: first, value: 250_000, id }), 'ok');
    // By serial number a wrong amount precedes a used reference; by code the PIN is looked at before the
    // amount.
    const reused = { by: seller, value: 240_000, reference: 'used' };
    const card = await bench.card(seller);
    assert.equal(await outcomeOf({ by: seller, card, value: 10_000, reference: 'used' }), 'ok');
    assert.equal(await outcomeOf({ ...reused, serial: second.serial }), '13');
    assert.equal(await outcomeOf({ ...reused, card: second }), '94');
    assert.equal(await outcomeOf({ by: seller, serial: second.serial }), 'ok');
    assert.equal(await bench.floatOf(seller), before - 100n);
    const { debited, amount_minor } = (await entryOf(id)) as { debited: string; amount_minor: bigint };
    const batch = await bench.ofCard(first, 'batch_id');
    assert.deepEqual([debited, amount_minor], [`batch ${batch}`, 2500n]);
    for (const card of [first, second]) assert.equal(await bench.ofCard(card, 'balance_minor'), '2500');
  });

  test('is declined if its value is outside the limits of the product', async () => {
    const seller = await bench.merchant('LIMITS');
    const card = await bench.card(seller);
    for (const value of [49_900, 500_100, undefined]) {
      const more = value === undefined ? {} : { value };
      assert.equal(await outcomeOf({ by: seller, serial: card.serial, ...more }), '61');
      assert.equal(await outcomeOf({ by: seller, card, ...more }), '61');
      // By code the PIN precedes the limits.
      assert.equal(await outcomeOf({ by: seller, card: wrong(card), ...more }), '55');
    }
    await bench.setCard(card, "closed = 'CANCELED', balance_minor = 0");
    assert.equal(await outcomeOf({ by: seller, card, value: 49_900 }), '61');
    const [least, most] = await bench.cards(seller, 2);
    assert.equal(await outcomeOf({ by: seller, card: least, value: 50_000 }), 'ok');
    assert.equal(await outcomeOf({ by: seller, serial: most.serial, value: 500_000 }), 'ok');
    // A used reference precedes the limits.
    const reused = { by: seller, value: 49_900, reference: 'within' };
    const [within, next] = await bench.cards(seller, 2);
    assert.equal(await outcomeOf({ ...reused, card: within, value: 50_000 }), 'ok');
    assert.equal(await outcomeOf({ ...reused, serial: next.serial }), '94');
    assert.equal(await outcomeOf({ ...reused, card: next }), '94');
    // The default of 5000 may be the maximum of the product.
    const by = await bench.merchant('MOST');
    assert.equal(await outcomeOf({ by, card: await bench.card(by) }), 'ok');
    assert.equal(await outcomeOf({ by, card: await bench.card(by), value: 50_000_100 }), '61');
    // The value of a batch was checked when the batch was generated.
    const priced = await bench.card(await bench.merchant('LATER'), 0.01);
    assert.equal(await outcomeOf({ by: seller, card: priced }), 'ok');
    await bench.product('LOW', 'USD', 2, { activation: 'on-activation', maxValue: 5000n });
    const low = await bench.merchant('LOW');
    assert.equal(await outcomeOf({ by: low, card: await bench.card(low, 25) }), 'ok');
  });

  test('uses the currency and the decimals of the voucher', async () => {
    const seller = await bench.merchant('DINAR');
    const [card, bare] = await bench.cards(seller, 2);
    assert.equal(await outcomeOf({ by: seller, card, value: 1 }), '13');
    assert.equal(await outcomeOf({ by: seller, card, value: 12_340 }), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '1234');
    assert.equal(await outcomeOf({ by: seller, card: bare }), 'ok');
    assert.equal(await bench.ofCard(bare, 'balance_minor'), '5000000');
    const dollars = await bench.card(one);
    assert.equal(await outcomeOf({ by: one, card: dollars, value: 10_010 }), '13');
    assert.equal(await outcomeOf({ by: one, serial: dollars.serial, value: 10_010 }), '13');
    assert.equal(await outcomeOf({ by: one, card: UNKNOWN, value: 10_010 }), '14');
    assert.equal(await outcomeOf({ by: one, card: wrong(dollars), value: 10_010 }), '55');
  });
});

describe('the float of a merchant', () => {
  test('pays for the activations of a call in order, and declines those it does not cover', async () => {
    const buyer = await bench.merchant(undefined, 1000n);
    const cards = await bench.cards(buyer, 4);
    const ask = (index: number, value: number) => ({
      by: buyer,
      card: cards[index] as Card,
      value: value * 10_000,
    });
    for (const reference of [undefined, 'too much'])
      assert.equal(await outcomeOf({ ...ask(0, 10.01), ...(reference && { reference }) }), '50');
    assert.deepEqual(await outcomesOf([ask(0, 6), ask(1, 5), ask(2, 4), ask(3, 11)]), [
      'ok',
      '50',
      'ok',
      '50',
    ]);
    assert.equal(await bench.floatOf(buyer), 0n);
    const booked = `select from journal where merchant_id = ${buyer.merchant.id} and kind = 'ACTIVATION'`;
    assert.equal((await bench.query(booked)).length, 2);
  });

  test('is checked again if it changes while a call waits for it', async () => {
    const buyer = await bench.merchant(undefined, 1000n);
    const card = await bench.card(buyer);
    const request = { by: buyer, card, value: 100_000 };
    assert.equal(await bench.behindFloat(buyer, 'balance_minor = 999', () => outcomeOf(request)), '50');
    const named = { ...request, reference: 'raced' };
    assert.equal(await bench.behindFloat(buyer, 'balance_minor = 998', () => outcomeOf(named)), '50');
    await bench.setFloat(buyer, 'balance_minor = 2000');
    assert.equal(await bench.behindFloat(buyer, 'balance_minor = 1500', () => outcomeOf(request)), 'ok');
    assert.equal(await bench.floatOf(buyer), 500n);
  });

  test('is debited for activations by its merchant only, and not for vouchers already paid for', async () => {
    const [poor, rich] = [await bench.merchant(undefined, 1n), await bench.merchant(undefined, 100_000n)];
    const seller = await bench.merchant('LATER');
    const [first, second] = await bench.cards(rich, 2);
    const [paid] = await bench.cards(seller, 1, { value: 25 });
    const outcomes = await outcomesOf([
      { by: poor, card: first, value: 10_000 },
      { by: poor, card: paid },
      { by: rich, card: second, value: 10_000 },
    ]);
    assert.deepEqual(outcomes, ['50', 'ok', 'ok']);
    assert.deepEqual([await bench.floatOf(poor), await bench.floatOf(rich)], [1n, 99_900n]);
    assert.equal(await outcomeOf({ by: poor, card: first, value: 100 }), 'ok');
    assert.equal(await bench.floatOf(poor), 0n);
  });

  test('must exist in the currency of the voucher, unless the voucher is already paid for', async () => {
    const seller = await bench.merchant('DINAR');
    const card = await bench.card(seller);
    assert.equal(await outcomeOf({ by: one, card, value: 10_000 }), 'account');
    await ensureAccounts(one.service.db, one.merchant.id, 'KWD');
    assert.equal(await outcomeOf({ by: one, card, value: 10_000 }), '50');
    assert.equal(await outcomeOf({ by: seller, card, value: 10_000 }), 'ok');
    // The reserve of the batch pays for this one.
    const [paid] = await bench.cards(await bench.merchant('DINAR_LATER'), 1, { value: 25 });
    assert.equal(await outcomeOf({ by: other, card: paid }), 'ok');
  });

  test('is debited by what it holds, and not by more', async () => {
    const buyer = await bench.merchant(undefined, 100n);
    const debit = async (amount: number) => {
      const [row] = await bench.query<{ done: boolean }>(
        `select debit_float(account_id, ${amount}, gen_random_uuid(), now()) as done from floats
         where merchant_id = ${buyer.merchant.id} and currency = 'USD'`,
      );
      return [row?.done, await bench.floatOf(buyer)];
    };
    assert.deepEqual(
      [await debit(101), await debit(100)],
      [
        [false, 100n],
        [true, 0n],
      ],
    );
  });

  test('sends one float.low event when it falls below its threshold, with the balance left', async () => {
    const buyer = await bench.merchant();
    const low = await bench.endpoint(buyer, 'float.low');
    const [first, second, third, last] = await bench.cards(buyer, 4);
    await bench.setFloat(buyer, 'balance_minor = 1000, low_minor = 500, topped_up_minor = 100000');
    const events = () =>
      bench.query<{ data: unknown }>(
        `
          select event_id, type, subject_id, data from webhook_deliveries where endpoint_id = ${low}
          order by event_id`,
      );
    const lowId = bench.id();
    await outcomeOf({ by: buyer, card: first, value: 50_000 });
    assert.deepEqual(await events(), []);
    await outcomesOf([
      { by: buyer, card: second, value: 100, lowId },
      { by: buyer, card: third, value: 49_900 },
    ]);
    const data = { currency: 'USD', balance: 0, threshold: 5 };
    assert.deepEqual(await events(), [{ event_id: lowId, type: 'float.low', subject_id: null, data }]);
    await bench.setFloat(buyer, 'balance_minor = 499');
    await outcomeOf({ by: buyer, card: last, value: 10_000 });
    assert.equal((await events()).length, 1);
    const [more] = await bench.cards(buyer, 1);
    await bench.setFloat(buyer, 'balance_minor = 10001, low_minor = null');
    await outcomeOf({ by: buyer, card: more as Card, value: 200 });
    assert.deepEqual((await events()).at(-1)?.data, { currency: 'USD', balance: 99.99, threshold: 100 });
  });
});
