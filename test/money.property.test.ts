import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseDecimal, toMinor, toNumber, toPositiveMinor, toText } from '../src/money.ts';
import type { Refusal } from '../src/refusal.ts';

const MOST = BigInt(Number.MAX_SAFE_INTEGER);
const decimals = fc.integer({ min: 0, max: 4 });
/** Where a double tells every amount apart: fifteen digits. */
const minor = fc.bigInt({ min: -999_999_999_999_999n, max: 999_999_999_999_999n });
const is13 = (error: unknown) => (error as Refusal).code === '13';

describe('an amount', () => {
  test('comes back from JSON as it went', () => {
    fc.assert(
      fc.property(minor, decimals, (amount, places) => {
        const sent = JSON.stringify(toNumber({ minor: amount, decimals: places }));
        assert.equal(toMinor(JSON.parse(sent), places), amount);
      }),
    );
  });

  test('is what its text says, in JSON as well', () => {
    fc.assert(
      fc.property(minor, decimals, (amount, places) => {
        const text = toText({ minor: amount, decimals: places });
        assert.equal(toMinor(Number(text), places), amount);
        assert.equal(text.split('.')[1]?.length ?? 0, places);
      }),
    );
  });

  test('with a decimal too many is refused, never rounded', () => {
    const digit = fc.integer({ min: 1, max: 9 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999_999_999 }), digit, decimals, (whole, last, places) => {
        const value = Number(`${whole}.${'0'.repeat(places)}${last}`);
        assert.throws(() => toMinor(value, places), is13);
      }),
    );
  });

  test('is exact or refused, whatever number it is', () => {
    fc.assert(
      fc.property(fc.double(), decimals, (value, places) => {
        let amount: bigint;
        try {
          amount = toMinor(value, places);
        } catch (error) {
          assert.ok(is13(error));
          return;
        }
        assert.ok(amount <= MOST && amount >= -MOST);
        const written = parseDecimal(String(value));
        assert.ok(written);
        assert.equal(written.digits * 10n ** BigInt(places - written.scale), amount);
      }),
    );
  });

  test('beyond the safe range is refused', () => {
    for (const places of [0, 1, 2, 3, 4])
      for (const value of [1e16, -1e16, 1e300, Number.NaN, Infinity, -Infinity])
        assert.throws(() => toMinor(value, places), is13);
    assert.equal(toMinor(Number.MAX_SAFE_INTEGER, 0), MOST);
    assert.throws(() => toMinor(2 ** 53, 0), is13);
  });

  test('that must be positive is', () => {
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
  test('is the same in every spelling', () => {
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
