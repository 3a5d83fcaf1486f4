import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MINOR_MAX, parseDecimal, toMinor, toNumber, toPositiveMinor, toText } from '../../src/money.ts';
import type { Refusal } from '../../src/refusal.ts';

const decimals = fc.integer({ min: 0, max: 4 });
/** Amounts of all sizes, and those near the greatest one, where doubles are the farthest apart. */
const minor = fc.oneof(
  fc.bigInt({ min: -MINOR_MAX, max: MINOR_MAX }),
  fc.bigInt({ min: MINOR_MAX - 10_000n, max: MINOR_MAX }),
  fc.bigInt({ min: -MINOR_MAX, max: -MINOR_MAX + 10_000n }),
);
const is13 = (error: unknown) => (error as Refusal).code === '13';

describe('an amount', () => {
  test('is unchanged by JSON', () => {
    fc.assert(
      fc.property(minor, decimals, (amount, places) => {
        const sent = JSON.stringify(toNumber({ minor: amount, decimals: places }));
        assert.equal(toMinor(JSON.parse(sent), places), amount);
      }),
    );
  });

  test('has a different double from its neighbors, also in JSON', () => {
    fc.assert(
      fc.property(minor, decimals, (amount, places) => {
        const number = toNumber({ minor: amount, decimals: places });
        for (const neighbor of [amount - 1n, amount + 1n])
          assert.notEqual(toNumber({ minor: neighbor, decimals: places }), number);
        assert.equal(toMinor(JSON.parse(JSON.stringify(number)), places), amount);
      }),
      { numRuns: 2_000 },
    );
  });

  test('is equal to its text, which has all decimals of the currency', () => {
    fc.assert(
      fc.property(minor, decimals, (amount, places) => {
        const text = toText({ minor: amount, decimals: places });
        assert.equal(toMinor(Number(text), places), amount);
        assert.equal(text.split('.')[1]?.length ?? 0, places);
      }),
    );
  });

  test('with a decimal too many is declined, not rounded', () => {
    const digit = fc.integer({ min: 1, max: 9 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999_999_999 }), digit, decimals, (whole, last, places) => {
        const value = Number(`${whole}.${'0'.repeat(places)}${last}`);
        assert.throws(() => toMinor(value, places), is13);
      }),
    );
  });

  test('from any double is exact or declined', () => {
    fc.assert(
      fc.property(fc.double(), decimals, (value, places) => {
        let amount: bigint;
        try {
          amount = toMinor(value, places);
        } catch (error) {
          assert.ok(is13(error));
          return;
        }
        assert.ok(amount <= MINOR_MAX && amount >= -MINOR_MAX);
        const written = parseDecimal(String(value));
        assert.ok(written);
        assert.equal(written.digits * 10n ** BigInt(places - written.scale), amount);
      }),
    );
  });

  test('that must be positive is declined at or below zero', () => {
    fc.assert(
      fc.property(minor, decimals, (amount, places) => {
        const value = toNumber({ minor: amount, decimals: places });
        if (amount > 0n) assert.equal(toPositiveMinor(value, places), amount);
        else assert.throws(() => toPositiveMinor(value, places), is13);
      }),
    );
  });
});

describe('a decimal number', () => {
  test('has the same value in every notation', () => {
    const places = fc.integer({ min: 0, max: 12 });
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 20n }), places, places, (digits, zeros, exponent) => {
        const plain = parseDecimal(String(digits));
        assert.deepEqual(parseDecimal(`${digits}.${'0'.repeat(zeros + 1)}`), plain);
        assert.deepEqual(parseDecimal(`${digits}${'0'.repeat(exponent)}e-${exponent}`), plain);
        assert.deepEqual(parseDecimal(`${digits}E+0`), plain);
      }),
    );
  });
});
