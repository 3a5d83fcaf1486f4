import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { A, type ApiRequest, B, DIALECTS, type Voucher } from '../support/dialects.ts';
import { Till, tillsOfOneService, withWrongPin } from '../support/till.ts';

const openTill = tillsOfOneService();

const activateAt = ({ serialNumber }: Voucher, value: number | null, reference: string): ApiRequest => ({
  method: 'POST',
  path: '/api/v2/activate',
  body: { serialNumber, value, reference },
});

for (const dialect of DIALECTS) {
  describe(`an activation by ${dialect.name}`, () => {
    test('gives a voucher without a value 5000, and debits the float', async () => {
      const till = await openTill({ float: 5_000_00n });
      const [voucher, other] = await till.vouchers(2, null);
      const { data } = await till.done(dialect.activate(voucher, 'activation'));
      assert.deepEqual(
        [data.transactionType, data.amount, data.reference],
        ['ACTIVATION', 5000, 'activation'],
      );
      assert.equal(data.voucherCode, `${voucher.code.slice(0, 4)}****${voucher.code.slice(-4)}`);
      assert.equal(await till.balanceOf(voucher), 5000);
      await till.refused(dialect, '50', dialect.activate(other, 'other'));
      assert.equal(await till.balanceOf(other), 0);
      await till.reconciles();
    });

    test('is declined a second time, and replayed under its reference through either prefix', async () => {
      const till = await openTill();
      const voucher = await till.voucher(null);
      const first = await till.done(dialect.activate(voucher, 'activation'));
      for (const other of DIALECTS) {
        const again = await till.done(other.activate(voucher, 'activation'));
        assert.deepEqual(
          [first.replayed, again.replayed, again.data.transactionId],
          [false, true, first.data.transactionId],
        );
        await till.refused(other, '41', other.activate(voucher, `another by ${other.name}`));
      }
      await till.refused(dialect, '94', dialect.activate(await till.voucher(null), 'activation'));
      assert.equal(await till.balanceOf(voucher), 5000);
      await till.reconciles();
    });

    test('uses the value of the batch, which was paid for at generation', async (t) => {
      const till = await Till.open(t);
      await till.product('LATER', { activation: 'on-activation' });
      const shop = await Till.another(till.testService, { product: 'LATER', float: 30_00n });
      const voucher = await shop.voucher(30);
      await shop.refused(A, '40', A.redeem(voucher, 1, 'early'));
      assert.equal(await shop.balanceOf(voucher), 0);
      assert.equal((await shop.done(dialect.activate(voucher, 'activation'))).data.amount, 30);
      await shop.done(A.redeem(voucher, 30, 'sale'));
      await shop.reconciles();
    });
  });
}

describe('an activation by code and PIN', () => {
  test('succeeds at another merchant, and is paid by the batch if that has a value', async (t) => {
    const issuer = await Till.open(t);
    await issuer.product('LATER', { activation: 'on-activation' });
    const seller = await Till.another(issuer.testService, { product: 'LATER' });
    const other = await Till.another(issuer.testService, { float: 0n });
    assert.equal((await other.done(A.activate(await seller.voucher(30), 'x'))).data.amount, 30);
    await issuer.reconciles();
  });

  test('requires the right PIN, also under a used reference', async () => {
    const till = await openTill();
    const voucher = await till.voucher(null);
    await till.refused(A, '55', A.activate(withWrongPin(voucher), 'x'));
    await till.done(A.activate(voucher, 'x'));
    for (let guess = 1; guess <= 5; guess++)
      await till.refused(A, '55', A.activate(withWrongPin(voucher), 'x'));
    await till.refused(A, '75', A.activate(voucher, 'x'));
  });
});

describe('an activation by serial number', () => {
  test('accepts a value if the batch has none', async () => {
    const till = await openTill();
    const [one, two] = await till.vouchers(2, null);
    assert.equal((await till.done(activateAt(one, 12.5, 'x'))).data.amount, 12.5);
    assert.equal((await till.done(activateAt(one, 12.5, 'x'))).replayed, true);
    await till.refused(B, '94', activateAt(one, 12.51, 'x'));
    await till.refused(B, '13', activateAt(two, 0, 'y'));
    await till.refused(B, '13', activateAt(two, 0.001, 'y'));
    await till.refused(B, '61', activateAt(two, 100_000.01, 'y'));
    await till.done(activateAt(two, null, 'y'));
    assert.deepEqual([await till.balanceOf(one), await till.balanceOf(two)], [12.5, 5000]);
  });

  test('declines a value other than that of the batch', async (t) => {
    const till = await Till.open(t);
    await till.product('LATER', { activation: 'on-activation' });
    const shop = await Till.another(till.testService, { product: 'LATER' });
    const voucher = await shop.voucher(30);
    await shop.refused(B, '13', activateAt(voucher, 30.01, 'x'));
    await shop.done(activateAt(voucher, 30, 'x'));
  });
});
