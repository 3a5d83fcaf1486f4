import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { adjustVoucher, cashOut } from '../../src/books/vouchers.ts';
import { DAY_MS } from '../../src/time.ts';
import { blockVoucher, replaceVoucher, unblockVoucher } from '../../src/vouchers/operate.ts';
import { DIALECTS, update } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { pick, Till, tillsOfOneService, UNKNOWN, withWrongPin } from '../support/till.ts';

const openTill = tillsOfOneService();

for (const dialect of DIALECTS) {
  describe(`a balance by ${dialect.name}`, () => {
    test('returns the amount left and the history, oldest first', async () => {
      const till = await openTill();
      const other = await Till.another(till.testService);
      const batch = await till.done(dialect.generate('batch', 1, 25));
      const [voucher] = batch.data.vouchers;
      const own = await till.done(dialect.redeem(voucher, 10, 'mine'));
      const theirs = await other.done(dialect.redeem(voucher, 5, 'theirs'));
      const { data } = await till.done(dialect.balance(voucher));
      assert.deepEqual([data.serialNumber, data.voucherCode], [voucher.serialNumber, voucher.code]);
      assert.deepEqual([data.balance, data.usableAmount], [10, 10]);
      assert.deepEqual(pick(data.transactions, 'transactionType', 'amount', 'reference'), [
        ['ACTIVATION', 25, 'batch'],
        ['REDEMPTION', 10, 'mine'],
        ['REDEMPTION', 5, ''],
      ]);
      const ids = pick(data.transactions, 'transactionId').flat();
      assert.deepEqual(ids.slice(1), [own.data.transactionId, theirs.data.transactionId]);
      const seen = await other.done(dialect.balance(voucher));
      assert.deepEqual(pick(seen.data.transactions, 'reference').flat(), ['', '', 'theirs']);
    });

    test('lists activations and redemptions, and no movements of the operator', async (t) => {
      const till = await Till.open(t);
      const voucher = await till.voucher(25);
      await till.done(dialect.redeem(voucher, 10, 'sale'));
      const { actor, service } = asOperator(till.testService.service);
      const operator = { actor: { ...actor, reason: 'a complaint' }, service };
      const serialNumber = BigInt(voucher.serialNumber);
      await adjustVoucher(operator, { serialNumber, deltaMinor: 300n, reference: 'up' });
      await adjustVoucher(operator, { serialNumber, deltaMinor: -100n, reference: 'down' });
      await cashOut(operator, { serialNumber, amountMinor: 500n, merchantId: null, reference: 'cash' });
      const { data } = await till.done(dialect.balance(voucher));
      assert.equal(data.balance, 12);
      assert.deepEqual(pick(data.transactions, 'transactionType', 'amount'), [
        ['ACTIVATION', 25],
        ['REDEMPTION', 10],
      ]);
    });

    test('shows the 50 newest of a long history, of which an update replaced one', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      for (let sale = 1; sale <= 60; sale++) await till.done(dialect.redeem(voucher, 0.1, `sale ${sale}`));
      await till.done(update('sale 60', 0));
      const { data } = await till.done(dialect.balance(voucher));
      assert.equal(data.balance, 19.1);
      const expected = Array.from({ length: 50 }, (_, index) => `sale ${index + 10}`);
      assert.deepEqual(pick(data.transactions, 'reference').flat(), expected);
    });

    test('shows the redemption in force after an update, and no reversal', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      await till.done(dialect.redeem(voucher, 10, 'one'));
      await till.done(dialect.redeem(voucher, 10, 'two'));
      await till.done(update('one', 4));
      await till.done(update('two', 0));
      const { data } = await till.done(dialect.balance(voucher));
      assert.deepEqual([data.balance, data.usableAmount], [21, 21]);
      assert.deepEqual(pick(data.transactions.slice(1), 'amount', 'reference'), [[4, 'NEW-one']]);
    });

    test('has a usable amount of 0 if the voucher cannot be spent', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      const [voucher, replaced] = await till.vouchers(2);
      const inactive = await till.voucher(null);
      const amounts = async (of: typeof voucher) => {
        const { data } = await till.done(dialect.balance(of));
        return [data.balance, data.usableAmount];
      };
      assert.deepEqual(await amounts(inactive), [0, 0]);
      await replaceVoucher(asOperator(service), BigInt(replaced.serialNumber));
      assert.deepEqual(await amounts(replaced), [0, 0]);
      await blockVoucher(asOperator(service), BigInt(voucher.serialNumber));
      assert.deepEqual(await amounts(voucher), [25, 0]);
      await unblockVoucher(asOperator(service), BigInt(voucher.serialNumber));
      assert.deepEqual(await amounts(voucher), [25, 25]);
      clock.advance(366 * DAY_MS);
      assert.deepEqual(await amounts(voucher), [25, 0]);
    });

    test('is declined without the right PIN', async () => {
      const till = await openTill();
      const opaque = await Till.another(till.testService, { opaque: true });
      const voucher = await till.voucher();
      await till.refused(dialect, '14', dialect.balance(UNKNOWN));
      await till.refused(dialect, '55', dialect.balance(withWrongPin(voucher)));
      await opaque.refused(dialect, '14', dialect.balance(withWrongPin(voucher)));
    });
  });
}

describe('the value of a voucher', () => {
  test('is returned by variant A only: the amount at activation', async () => {
    const till = await openTill();
    const [voucher, inactive] = [await till.voucher(25), await till.voucher(null)];
    const [a, b] = DIALECTS;
    await till.done(a.redeem(voucher, 10, 'sale'));
    assert.equal((await till.done(a.balance(voucher))).data.value, 25);
    assert.equal((await till.done(a.balance(inactive))).data.value, null);
    assert.equal('value' in (await till.done(b.balance(voucher))).data, false);
  });
});
