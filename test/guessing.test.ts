import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pardon } from '../src/api-keys/keys.ts';
import { DIALECTS } from './dialects.ts';
import { asOperator } from './harness.ts';
import { Till, UNKNOWN, withWrongPin } from './till.ts';

const SECOND_MS = 1_000;
const NOON = new Date(Date.UTC(2030, 0, 15, 12));

for (const dialect of DIALECTS) {
  describe(`a key that keeps guessing by ${dialect.name}`, () => {
    test('may send no PIN until the next day, and is told when that is', async (t) => {
      const till = await Till.open(t);
      const { clock } = till.testService;
      clock.set(NOON);
      const voucher = await till.voucher();
      for (let guess = 1; guess <= 48; guess++) await till.refused(dialect, '14', dialect.balance(UNKNOWN));
      // Wrong PINs count as unknown codes do.
      for (let guess = 1; guess <= 3; guess++)
        await till.refused(dialect, '55', dialect.balance(withWrongPin(voucher)));
      for (const asked of [
        dialect.balance(voucher),
        dialect.redeem(voucher, 1, 'x'),
        dialect.redeem(UNKNOWN, 1, 'y'),
      ]) {
        const { headers, body } = await till.refused(dialect, '97', asked);
        assert.equal(body.message, 'Too many requests');
        assert.equal(Number(headers.get('retry-after')), 12 * 3_600);
      }
      // What carries no PIN goes on.
      await till.done(dialect.list());
      await till.done(dialect.generate('batch', 1, 25));
      clock.advance(12 * 3_600 * SECOND_MS);
      await till.done(dialect.redeem(voucher, 1, 'x'));
    });

    test('may go on when the operator says so', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      clock.set(NOON);
      const voucher = await till.voucher();
      for (let guess = 1; guess <= 51; guess++)
        await till.refused(dialect, '14', dialect.redeem(UNKNOWN, 1, 'x'));
      await till.refused(dialect, '97', dialect.balance(voucher));
      assert.equal(await pardon(asOperator(service), till.merchant.keyId), true);
      clock.advance(SECOND_MS);
      await till.done(dialect.balance(voucher));
    });

    test('stops nobody but itself', async (t) => {
      const till = await Till.open(t);
      till.testService.clock.set(NOON);
      const other = await Till.at(till.testService);
      const voucher = await till.voucher();
      for (let guess = 1; guess <= 51; guess++) await till.refused(dialect, '14', dialect.balance(UNKNOWN));
      await other.done(dialect.balance(voucher));
    });
  });
}
