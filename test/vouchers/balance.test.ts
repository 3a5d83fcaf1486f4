import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { adjustVoucher, cashOut } from '../../src/books/vouchers.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { pick, Till, tillsOfOneService } from '../support/till.ts';

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
