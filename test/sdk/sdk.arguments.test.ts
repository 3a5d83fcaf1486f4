import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { currencyDecimals } from '../../sdk/src/check.ts';
import { Scrip, ScripError } from '../../sdk/src/index.ts';
import { decimalsOf } from '../../src/money.ts';
import { answering, CODE, failure, PIN, voucher } from '../support/sdk.server.ts';

/** Arguments that the client refuses before it sends a request. */

describe('an argument', () => {
  it('that is invalid is refused before a request is sent', async (t) => {
    const { a, b, count } = await answering(t, (_request, response) => response.end());
    const loose = (value: unknown) => value as never;
    const refused: [string, Promise<unknown>][] = [
      ...[Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 0.1 + 0.2, 1e21, 1e-7, 10.12345, 2 ** 53].map(
        (amount): [string, Promise<unknown>] => ['13', a.redeem({ ...voucher, amount })],
      ),
      ['30', a.redeem({ ...voucher, amount: loose('10') })],
      ['30', a.redeem({ ...voucher, amount: loose(undefined) })],
      ['30', a.redeem(loose(undefined))],
      ['30', b.redeem({ code: CODE, amount: 1 })],
      ['30', b.redeem({ code: CODE + PIN, pin: PIN, amount: 1 })],
      ['30', b.balance({ code: '48291305764', pin: PIN })],
      ['30', b.balance({ code: CODE, pin: loose(731) })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: 'NEW-x' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: '' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: 'a\nb' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: '\ud800' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: 'x'.repeat(101) })],
      ['18', b.transaction('..')],
      ['18', b.transaction('.')],
      // A missing amount must not reverse the redemption.
      ['30', a.updateRedemption(loose({ reference: 'x' }))],
      ['30', a.updateRedemption(loose({ reference: 'x', amountUsed: null }))],
      ['30', a.updateRedemption(loose({ reference: 'x', amount: 5 }))],
      ['30', a.updateRedemption(loose({ reference: 'x', amountUsed: '0' }))],
      ...[-1, -0, Number.NaN, 0.1 + 0.2, 1e-7, 1e21].map((amountUsed): [string, Promise<unknown>] => [
        '13',
        a.updateRedemption({ reference: 'x', amountUsed }),
      ]),
      // An invalid time would end a call at once, or never.
      ['30', a.redeem({ ...voucher, amount: 1 }, { deadlineMs: Number.NaN })],
      ['30', a.transactions({ attemptTimeoutMs: 0 })],
      ['30', a.download('x', { deadlineMs: -1 })],
      ['30', a.downloadVouchers('x', { idleTimeoutMs: loose('1') }).next()],
      ['30', a.waitForBatch('x', { deadlineMs: loose(null) })],
      ['16', b.generate({ quantity: 1.5 })],
      ['30', a.generate(loose({ quantity: 1, value: 1 }))],
      ['30', a.generate(loose({ quantity: 1, productCode: 'DEFAULT' }))],
      ['17', b.generate({ quantity: 1, expiryDate: new Date(Number.NaN) })],
      ['30', b.activate({ serialNumber: 'x' })],
    ];
    const calls = refused.map(([statusCode, call]) => [statusCode, failure(call)] as const);
    for (const [at, [statusCode, call]] of calls.entries()) {
      const error = await call;
      assert.deepEqual(
        [error.statusCode, error.httpStatus],
        [statusCode, null],
        `refused[${at}]: ${error.message}`,
      );
    }
    assert.equal(count(), 0);
  });

  it('has at most the decimals of the currency, if the client knows the currency', async () => {
    const options = { baseUrl: 'http://127.0.0.1:9', keyId: 'k', secret: 's', variant: 'a' } as const;
    const yen = new Scrip({ ...options, currency: 'JPY' });
    assert.equal((await failure(yen.redeem({ ...voucher, amount: 10.5 }))).code, 'invalidAmount');
    for (const currency of Intl.supportedValuesOf('currency')) {
      assert.equal(currencyDecimals(currency), decimalsOf(currency), currency);
    }
  });

  it('that the variant does not have is a type error, and is refused', async () => {
    const options = { baseUrl: 'http://127.0.0.1:9', keyId: 'k', secret: 's' };
    const a = new Scrip({ ...options, variant: 'a' });
    const b = new Scrip({ ...options, variant: 'b' });
    for (const call of [
      // @ts-expect-error: variant B has no updates.
      () => b.updateRedemption({ reference: 'x', amountUsed: 1 }),
      // @ts-expect-error: nor reversals.
      () => b.reverseRedemption('x'),
      // @ts-expect-error: nor their details.
      () => b.redemptionUpdate('x'),
      // @ts-expect-error: variant B generates with the merchant's product.
      () => b.generate({ quantity: 1, productCode: 'DEFAULT' }),
      // @ts-expect-error: variant B activates by serial number.
      () => b.activate({ code: CODE, pin: PIN }),
      // @ts-expect-error: variant A by code and PIN.
      () => a.activate({ serialNumber: 1 }),
      // @ts-expect-error: variant A takes no expiry date.
      () => a.generate({ productCode: 'DEFAULT', quantity: 1, value: 1, expiryDate: new Date() }),
    ]) {
      const error = await failure(call());
      assert.equal(error.code, 'unsupportedByVariant', error.message);
      assert.match(error.message, /variant [ab] has no/);
    }
    // @ts-expect-error: the amount of an update has no default.
    await assert.rejects(a.updateRedemption({ reference: 'x' }), ScripError);
    // @ts-expect-error: there are two variants.
    assert.throws(() => new Scrip({ ...options, variant: 'c' }), TypeError);
  });
});
