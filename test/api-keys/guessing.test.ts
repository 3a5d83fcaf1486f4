import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DIALECTS } from '../support/dialects.ts';
import { Till, UNKNOWN, withWrongPin } from '../support/till.ts';

const SECOND_MS = 1_000;
const NOON = new Date(Date.UTC(2030, 0, 15, 12));

for (const dialect of DIALECTS) {
  describe(`an API key that guesses codes and PINs by ${dialect.name}`, () => {
    test('is declined every call with a PIN until the next day, with that time in Retry-After', async (t) => {
      const till = await Till.open(t);
      const { clock } = till.testService;
      clock.set(NOON);
      const voucher = await till.voucher();
      for (let guess = 1; guess <= 48; guess++) await till.refused(dialect, '14', dialect.balance(UNKNOWN));
      // Wrong PINs count as unknown codes do.
      for (let guess = 1; guess <= 3; guess++)
        await till.refused(dialect, '55', dialect.balance(withWrongPin(voucher)));
      for (const request of [
        dialect.balance(voucher),
        dialect.redeem(voucher, 1, 'x'),
        dialect.redeem(UNKNOWN, 1, 'y'),
      ]) {
        const { headers, body } = await till.refused(dialect, '97', request);
        assert.equal(body.message, 'Too many requests');
        assert.equal(Number(headers.get('retry-after')), 12 * 3_600);
      }
      // Calls without a PIN still work.
      await till.done(dialect.list());
      await till.done(dialect.generate('batch', 1, 25));
      clock.advance(12 * 3_600 * SECOND_MS);
      await till.done(dialect.redeem(voucher, 1, 'x'));
    });
  });
}
