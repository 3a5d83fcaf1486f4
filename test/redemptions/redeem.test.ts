import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS } from '../../src/time.ts';
import { blockVoucher, extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
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

    test('returns the state of the voucher only with the right PIN', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      const [blocked, replaced, empty, expired] = await till.vouchers(4);
      const inactive = await till.voucher(null);
      await till.done(dialect.redeem(empty, 25, 'all'));
      await blockVoucher(asOperator(service), BigInt(blocked.serialNumber));
      await replaceVoucher(asOperator(service), BigInt(replaced.serialNumber));
      const year = new Date(clock.now().getTime() + 400 * DAY_MS);
      for (const { serialNumber } of [inactive, empty])
        await extendVoucher(asOperator(service), BigInt(serialNumber), year);
      clock.advance(366 * DAY_MS);
      for (const [code, voucher] of [
        ['43', blocked],
        ['44', replaced],
        ['54', expired],
        ['40', inactive],
        ['42', empty],
      ] as const) {
        await till.refused(dialect, '55', dialect.redeem(withWrongPin(voucher), 1, 'sale'));
        await till.refused(dialect, code, dialect.redeem(voucher, 1, 'sale'));
      }
    });

    test('is accepted by every merchant or only by the issuer, by the scope of the product', async (t) => {
      const issuer = await Till.open(t);
      const other = await Till.another(issuer.testService);
      await other.done(dialect.redeem(await issuer.voucher(), 1, 'network'));
      await issuer.product('OWN', { scope: 'issuer' });
      const seller = await Till.another(issuer.testService, { product: 'OWN' });
      const voucher = await seller.voucher();
      await other.refused(dialect, '47', dialect.redeem(voucher, 1, 'sale'));
      await seller.done(dialect.redeem(voucher, 1, 'sale'));
    });

    test("has at most the decimals of the voucher's currency", async (t) => {
      const till = await Till.open(t);
      await till.product('YEN', {}, 'JPY', 0);
      await till.product('DINAR', {}, 'KWD', 3);
      const yen = await Till.another(till.testService, { product: 'YEN' });
      const dinar = await Till.another(till.testService, { product: 'DINAR' });
      const [inYen, inDinar] = [await yen.voucher(500), await dinar.voucher(1.234)];
      await till.refused(dialect, '13', dialect.redeem(inYen, 1.5, 'sale'));
      await till.refused(dialect, '13', dialect.redeem(await till.voucher(), 1.234, 'sale'));
      await till.done(dialect.redeem(inYen, 499, 'sale'));
      await till.done(dialect.redeem(inDinar, 1.233, 'other sale'));
      assert.deepEqual([await till.balanceOf(inYen), await till.balanceOf(inDinar)], [1, 0.001]);
      await till.reconciles();
    });
  });
}
