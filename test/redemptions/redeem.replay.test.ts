import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { A, type ApiRequest, B, DIALECTS } from '../support/dialects.ts';
import { Till, tillsOfOneService, withWrongPin } from '../support/till.ts';

const openTill = tillsOfOneService();

const otherPrefix = (
  voucher: { code: string; pin: string },
  amount: number,
  reference: string,
): ApiRequest => ({
  method: 'POST',
  path: '/api/v2/redeem',
  body: { voucherCode: voucher.code, pin: voucher.pin, amount, reference },
});

for (const dialect of DIALECTS) {
  describe(`a repeated redemption by ${dialect.name}`, () => {
    test('gets the answer of the first one, through every prefix, and takes no money', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      const first = await till.done(dialect.redeem(voucher, 10, 'sale'));
      assert.equal(first.headers.has('idempotent-replayed'), false);
      for (const request of [
        A.redeem(voucher, 10, 'sale'),
        B.redeem(voucher, 10, 'sale'),
        otherPrefix(voucher, 10, 'sale'),
      ]) {
        const again = await till.done(request);
        assert.equal(again.headers.get('idempotent-replayed'), 'true');
        assert.equal(again.data.transactionId, first.data.transactionId);
        assert.equal(again.data.timestamp, first.data.timestamp);
      }
      assert.equal(await till.balanceOf(voucher), 15);
    });

    test('is a replay if its amount is spelled differently', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      const first = await till.done(dialect.redeem(voucher, 10, 'sale'));
      const { authorization } = till.merchant;
      const { path, body } = dialect.redeem(voucher, 10, 'sale');
      for (const spelling of ['10.0', '10.00', '1e1', '1.0E+1']) {
        const text = JSON.stringify(body).replace('"amount":10', `"amount":${spelling}`);
        assert.ok(text.includes(spelling));
        const headers = { authorization, 'content-type': 'application/json' };
        const response = await fetch(till.testService.baseUrl + path, {
          method: 'POST',
          headers,
          body: text,
        });
        const { data } = (await response.json()) as { data: { transactionId: string } };
        assert.equal(data.transactionId, first.data.transactionId);
        assert.equal(response.headers.get('idempotent-replayed'), 'true');
      }
    });

    test('is refused with another amount or voucher', async () => {
      const till = await openTill();
      const [voucher, other] = await till.vouchers(2);
      await till.done(dialect.redeem(voucher, 10, 'sale'));
      await till.refused(dialect, '94', dialect.redeem(voucher, 9.99, 'sale'));
      await till.refused(dialect, '94', dialect.redeem(other, 10, 'sale'));
      assert.deepEqual([await till.balanceOf(voucher), await till.balanceOf(other)], [15, 25]);
    });

    test('is a replay even after the voucher has been spent', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      const first = await till.done(dialect.redeem(voucher, 25, 'sale'));
      const again = await till.done(dialect.redeem(voucher, 25, 'sale'));
      assert.deepEqual([again.replayed, again.data], [true, first.data]);
    });

    test('counts wrong PINs as a new redemption does', async (t) => {
      const till = await Till.open(t);
      const voucher = await till.voucher(25);
      await till.done(dialect.redeem(voucher, 10, 'sale'));
      for (let guess = 1; guess <= 5; guess++)
        await till.refused(dialect, '55', dialect.redeem(withWrongPin(voucher), 10, 'sale'));
      await till.refused(dialect, '75', dialect.redeem(withWrongPin(voucher), 10, 'sale'));
      // While the voucher is locked, even the right PIN is refused.
      await till.refused(dialect, '75', dialect.redeem(voucher, 10, 'sale'));
      till.testService.clock.advance(15 * 60_000);
      assert.equal((await till.done(dialect.redeem(voucher, 10, 'sale'))).replayed, true);
    });

    test('is a new redemption under the reference of another merchant or of another operation', async () => {
      const till = await openTill();
      const other = await Till.another(till.testService);
      const voucher = await till.voucher(25);
      const inactive = await till.voucher(null);
      await till.done(dialect.generate('one', 1, 5));
      const first = await till.done(dialect.redeem(voucher, 10, 'one'));
      const second = await other.done(dialect.redeem(voucher, 10, 'one'));
      assert.notEqual(second.data.transactionId, first.data.transactionId);
      assert.equal((await till.done(dialect.activate(inactive, 'one'))).replayed, false);
      assert.equal(await till.balanceOf(voucher), 5);
    });
  });
}

describe('a redemption without a reference', () => {
  test('is a new redemption each time', async () => {
    const till = await openTill();
    const { code, pin } = await till.voucher(25);
    const request: ApiRequest = {
      method: 'POST',
      path: '/merchant-client/v2/redeem',
      body: { code, pin, amount: 10 },
    };
    const [one, two] = [await till.done(request), await till.done(request)];
    assert.notEqual(one.data.transactionId, two.data.transactionId);
    assert.deepEqual([one.replayed, two.replayed, one.data.reference], [false, false, null]);
    await till.refused(A, '51', request);
  });
});
