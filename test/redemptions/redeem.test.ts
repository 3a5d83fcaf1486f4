import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DIALECTS } from '../support/dialects.ts';
import { Till, tillsOfOneService, UNKNOWN, withWrongPin } from '../support/till.ts';

const openTill = tillsOfOneService();

for (const dialect of DIALECTS) {
  describe(`a redemption by ${dialect.name}`, () => {
    test('takes parts of the balance, down to zero', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      for (const [index, [amount, left]] of [
        [10.1, 14.9],
        [0.01, 14.89],
        [14.89, 0],
      ].entries()) {
        const { data, replayed } = await till.done(dialect.redeem(voucher, Number(amount), `sale-${index}`));
        assert.deepEqual([data.transactionType, data.amount, replayed], ['REDEMPTION', amount, false]);
        assert.deepEqual(
          [data.reference, data.serialNumber],
          [`sale-${index}`, String(voucher.serialNumber)],
        );
        assert.equal(await till.balanceOf(voucher), left);
      }
      await till.refused(dialect, '42', dialect.redeem(voucher, 0.01, 'late'));
      await till.reconciles();
    });

    test('takes the whole amount or nothing', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      await till.refused(dialect, '51', dialect.redeem(voucher, 25.01, 'sale'));
      assert.equal(await till.balanceOf(voucher), 25);
      // A decline does not use the reference up.
      await till.done(dialect.redeem(voucher, 25, 'sale'));
    });

    test('answers an unknown code and a wrong PIN differently, unless the merchant is opaque', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      await till.refused(dialect, '14', dialect.redeem(UNKNOWN, 1, 'sale'));
      await till.refused(dialect, '55', dialect.redeem(withWrongPin(voucher), 1, 'sale'));
      const opaque = await Till.another(till.testService, { opaque: true });
      await opaque.refused(dialect, '14', dialect.redeem(UNKNOWN, 1, 'sale'));
      await opaque.refused(dialect, '14', dialect.redeem(withWrongPin(voucher), 1, 'sale'));
    });
  });
}
