import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { cancelVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { asOperator } from '../support/harness.ts';
import { updates } from '../support/updates.ts';

const { bench, merchants, redeemed, rowsOf, outcomeOf, found, entriesOf } = updates();
let one: Context;
let other: Context;

before(() => {
  ({ one, other } = merchants);
});

describe('an update', () => {
  for (const newAmount of [24, 3, 0.01, 0]) {
    test(`to ${newAmount} reverses the redemption, books the new one, and returns both`, async () => {
      const { card, reference, id } = await redeemed(10);
      const [settlement] = await bench.query<{ id: bigint }>(
        `select credit_account as id from journal where id = '${id}'`,
      );
      const [reversalId, newId] = [bench.id(), bench.id()];
      const later = new Date(bench.now.getTime() + 5000);
      const rows = await rowsOf(
        [{ by: one, reference, amount: newAmount * 10_000, reversalId, newId }],
        later,
      );
      const expected = {
        ...{ ord: 1, outcome: 'ok', original_id: id, original_minor: 1000n, original_at: bench.now },
        ...{
          reference,
          serial_number: card.serial,
          sealed: rows[0] && Reflect.get(rows[0], 'sealed'),
        },
        ...{ decimals: 2, reversal_id: reversalId, updated_at: later },
        ...{ new_id: newAmount > 0 ? newId : null, new_minor: BigInt(newAmount * 100) },
      };
      const { outcome, ...update } = expected;
      // The rest of a row is what the function writes.
      const returned = Object.keys(expected).map((name) => [name, Reflect.get(rows[0] ?? {}, name)]);
      assert.deepEqual([Object.fromEntries(returned), rows.length], [expected, 1]);
      assert.equal(outcome, 'ok');
      assert.deepEqual(await found(one, reference), [update]);
      const accounts = { of: card.serial, to: settlement?.id };
      const common = {
        ...{ currency: 'USD', merchant_id: one.merchant.id, serial_number: card.serial },
        ...{ original_id: id, occurred_at: later },
      };
      const reversal = { id: reversalId, kind: 'REDEMPTION_REVERSAL', debit_account: accounts.to };
      const renewed = {
        id: newId,
        kind: 'REDEMPTION',
        debit_account: accounts.of,
        credit_account: accounts.to,
      };
      const entries = [
        {
          ...reversal,
          credit_account: accounts.of,
          amount_minor: 1000n,
          ...common,
          reference: `CANCEL-${reference}`,
        },
        ...(newAmount > 0
          ? [{ ...renewed, amount_minor: BigInt(newAmount * 100), ...common, reference: `NEW-${reference}` }]
          : []),
      ];
      const order = (list: object[]) => list.map((each) => JSON.stringify(each, text)).sort();
      const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
      assert.deepEqual(
        order((await entriesOf(card)).map((each) => Object.fromEntries(Object.entries(each).sort()))),
        order(entries.map((each) => Object.fromEntries(Object.entries(each).sort()))),
      );
      assert.equal(await bench.ofCard(card, 'balance_minor'), String(2500 - newAmount * 100));
    });
  }

  test('is booked once: a second one is refused, and changes nothing', async () => {
    const { card, reference } = await redeemed(10);
    assert.equal(await outcomeOf(one, reference, 50_000), 'ok');
    for (const amount of [50_000, 0, 250_000, 9_990_000])
      assert.equal(await outcomeOf(one, reference, amount), '58');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2000');
    assert.equal((await entriesOf(card)).length, 2);
  });

  test('may take the whole balance, and not one unit more', async () => {
    const { card, reference } = await redeemed(10);
    assert.equal(await outcomeOf(one, reference, 250_100), '51');
    assert.equal(await outcomeOf(one, reference, 250_000), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '0');
  });

  test('is in units of the currency of the voucher', async () => {
    const { card, reference, by } = await redeemed(1.234, await bench.merchant('DINAR'));
    assert.equal(await outcomeOf(by, reference, 1), '13');
    assert.equal(await outcomeOf(by, reference, 10), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '24999');
    assert.deepEqual(
      (await found(by, reference)).map(({ decimals, new_minor }) => [decimals, new_minor]),
      [[3, 1n]],
    );
    const dollars = await redeemed(10);
    assert.equal(await outcomeOf(one, dollars.reference, 10), '13');
    assert.equal(await outcomeOf(one, dollars.reference, 100_010), '13');
    assert.equal(await outcomeOf(one, 'unknown', 10), '60');
  });
});

describe('the updated redemption', () => {
  test('is one of the merchant, found by its reference, or by its ID if it has none', async () => {
    const { reference, id, card } = await redeemed(10);
    assert.equal(await outcomeOf(other, reference, 0), '60');
    assert.equal(await outcomeOf(one, id, 0), '60');
    const { transaction } = await redeem(one, { ...card, amount: 1 });
    const [row] = await rowsOf([{ by: one, reference: transaction.transactionId, amount: 0 }]);
    assert.deepEqual([row?.outcome, row?.reference], ['ok', null]);
    assert.equal((await found(one, transaction.transactionId))[0]?.original_id, transaction.transactionId);
    const entries = await entriesOf(card);
    assert.deepEqual(
      entries.map((entry) => Reflect.get(entry, 'reference')),
      [null],
    );
    await bench.query(`update claims set operation = 'activate' where id = '${id}'`);
    assert.equal(await outcomeOf(one, reference, 0), '60');
    assert.deepEqual(await found(one, reference), []);
  });

  test('may be of a blocked or expired voucher, if the update takes no more money', async () => {
    const states = [
      ['43', 'blocked_at = now()'],
      ['43', "blocked_at = now(), expires_at = '2029-01-01'"],
      ['54', "expires_at = '2030-01-15T08:00:00Z'"],
    ] as const;
    for (const [code, what] of states) {
      for (const [amount, outcome] of [
        [100_100, code],
        [100_000, 'ok'],
        [90_000, 'ok'],
      ] as const) {
        const { card, reference } = await redeemed(10);
        await bench.setCard(card, what);
        assert.equal(await outcomeOf(one, reference, amount), outcome, what);
      }
    }
    const { card, reference } = await redeemed(10);
    await bench.setCard(card, "expires_at = '2030-01-15T08:00:00.001Z'");
    assert.equal(await outcomeOf(one, reference, 110_000), 'ok');
  });

  test('may not be of a canceled voucher, even if the update returns money', async () => {
    const { card, reference } = await redeemed(10);
    await bench.setCard(card, "closed = 'CANCELED', balance_minor = 0, blocked_at = now()");
    for (const amount of [0, 200_000]) assert.equal(await outcomeOf(one, reference, amount), '44');
    assert.deepEqual(await entriesOf(card), []);
  });

  test('may not be of a replaced voucher whose last replacement was canceled', async () => {
    const { card, reference } = await redeemed(10);
    const operator = asOperator(one.service);
    const last = await replaceVoucher(operator, await replaceVoucher(operator, card.serial));
    await cancelVoucher(operator, last);
    for (const amount of [0, 40_000, 100_000, 200_000])
      assert.equal(await outcomeOf(one, reference, amount), '44');
    assert.deepEqual(await entriesOf(card), []);
    assert.equal((await showVoucher(one.service, last)).balance, 0n);
  });

  test('may be of a replaced voucher: the last replacement gets money back, none pays more', async () => {
    for (const [amount, given] of [
      [0, 1000n],
      [40_000, 600n],
      [100_000, 0n],
    ] as const) {
      const { card, reference } = await redeemed(10);
      const operator = asOperator(one.service);
      const middle = await replaceVoucher(operator, card.serial);
      const last = await replaceVoucher(operator, middle);
      assert.equal(await outcomeOf(one, reference, 100_100), '44');
      const held = () =>
        bench.query(`select serial_number, balance_minor, value_minor from vouchers
          where serial_number in (${card.serial}, ${middle}, ${last}) order by serial_number`);
      const row = (serial_number: bigint, balance_minor: bigint, value_minor: bigint) => ({
        serial_number,
        balance_minor,
        value_minor,
      });
      assert.deepEqual(await held(), [
        row(card.serial, 0n, 2500n),
        row(middle, 0n, 1500n),
        row(last, 1500n, 1500n),
      ]);
      assert.equal(await outcomeOf(one, reference, amount), 'ok');
      const after = row(last, 1500n + given, 1500n + given);
      assert.deepEqual(await held(), [row(card.serial, 0n, 2500n), row(middle, 0n, 1500n), after]);
      const moved = `
        select debit_account, credit_account, amount_minor from journal where serial_number = ${last}
        and kind = 'REPLACEMENT' and original_id is not null`;
      const entry = { debit_account: card.serial, credit_account: last, amount_minor: given };
      assert.deepEqual(await bench.query(moved), given > 0n ? [entry] : []);
      assert.equal(await outcomeOf(one, reference, 0), '58');
    }
  });

  test('is refused as blocked before it is refused as updated, if the update takes more money', async () => {
    const { card, reference } = await redeemed(10);
    await outcomeOf(one, reference, 50_000);
    await bench.setCard(card, 'blocked_at = now()');
    assert.equal(await outcomeOf(one, reference, 110_000), '43');
    assert.equal(await outcomeOf(one, reference, 0), '58');
  });
});
