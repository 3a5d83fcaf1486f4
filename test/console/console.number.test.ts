import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readNumber, writeNumber } from '../../console/src/ui/number.ts';

test('a typed number is read with the separators of its language, and never becomes a larger one', () => {
  for (const [text, english, german] of [
    ['12.50', 12.5, 12.5],
    ['12,50', 12.5, 12.5],
    ['1,234.50', 1234.5, '1,234.50'],
    ['1.234,50', '1.234,50', 1234.5],
    ['1,234', 1234, 1.234],
    ['1.234', 1.234, 1234],
    ['1 234,50', 1234.5, 1234.5],
    ['-5', -5, -5],
    ['\u22125', -5, -5],
    ['0,125', 0.125, 0.125],
    ['12,3456,7', '12,3456,7', '12,3456,7'],
    ['5 EUR', '5 EUR', '5 EUR'],
    ['1e3', '1e3', '1e3'],
    ['', undefined, undefined],
  ] as const) {
    assert.equal(readNumber(text, 'en'), english, `${text} in English`);
    assert.equal(readNumber(text, 'de'), german, `${text} in German`);
  }
});

test('a whole number takes groups, and no decimals', () => {
  assert.equal(readNumber('5,000', 'en', true), 5000);
  assert.equal(readNumber('5.000', 'de', true), 5000);
  assert.equal(readNumber('5.5', 'en', true), '5.5');
  assert.equal(readNumber('5.000', 'en', true), '5.000');
});

test('a negative number has a minus sign before it and its currency, and is read again', () => {
  const money = { style: 'currency', currency: 'EUR', currencyDisplay: 'code' } as const;
  assert.equal(writeNumber(-1234.5, 'en-GB', money), '\u2212EUR\u00a01,234.50');
  assert.equal(writeNumber(-1234.5, 'de-DE', money), '\u22121.234,50\u00a0EUR');
  assert.equal(writeNumber(3, 'en-GB', { ...money, signDisplay: 'exceptZero' }), '+EUR\u00a03.00');
  for (const [language, locale] of [
    ['en', 'en-GB'],
    ['de', 'de-DE'],
  ] as const)
    assert.equal(readNumber(writeNumber(-1234.5, locale), language), -1234.5);
});
