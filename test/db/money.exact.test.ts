import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decimalsOf,
  isSameDecimal,
  moneyIn,
  parseDecimal,
  textIn,
  toMinor,
  toNumber,
  toPositiveMinor,
  toPositiveUnits,
  toSum,
  toText,
  toUnits,
  unitOf,
} from '../../src/money.ts';

const is13 = (error: unknown) => (error as { code?: string }).code === '13';

test('each currency has the decimals of ISO 4217', () => {
  const none = 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF';
  const three = 'BHD IQD JOD KWD LYD OMR TND';
  for (const code of none.split(' ')) assert.equal(decimalsOf(code), 0, code);
  for (const code of three.split(' ')) assert.equal(decimalsOf(code), 3, code);
  for (const code of ['CLF', 'UYW']) assert.equal(decimalsOf(code), 4, code);
  for (const code of ['USD', 'EUR', 'CHF', 'GBP', 'HUF']) assert.equal(decimalsOf(code), 2, code);
  const others = Intl.supportedValuesOf('currency').filter(
    (code) => !`${none} ${three} CLF UYW`.includes(code),
  );
  assert.ok(others.every((code) => decimalsOf(code) === 2));
});

test('an unknown currency has no decimals', () => {
  for (const code of ['', 'usd', 'US', 'USDX', 'QQQ', 'toString', 'Stryker was here!', 'BIF CLP'])
    assert.equal(decimalsOf(code), undefined, code);
});

test('a decimal number is parsed exactly, to its shortest form', () => {
  const read = (text: string) => parseDecimal(text);
  assert.deepEqual(read('12.50'), { digits: 125n, scale: 1 });
  assert.deepEqual(read('-12.05'), { digits: -1205n, scale: 2 });
  assert.deepEqual(read('1e2'), { digits: 100n, scale: 0 });
  assert.deepEqual(read('1.5E+3'), { digits: 1500n, scale: 0 });
  assert.deepEqual(read('150e-1'), { digits: 15n, scale: 0 });
  assert.deepEqual(read('5e-3'), { digits: 5n, scale: 3 });
  assert.deepEqual(read('1000'), { digits: 1000n, scale: 0 });
  assert.deepEqual(read('10.0e0'), { digits: 10n, scale: 0 });
  for (const zero of ['0', '-0', '0.000', '0e5', '0e-5'])
    assert.deepEqual(read(zero), { digits: 0n, scale: 0 }, zero);
  assert.deepEqual(read(`${'9'.repeat(40)}.${'9'.repeat(40)}`), {
    digits: BigInt('9'.repeat(80)),
    scale: 40,
  });
  assert.deepEqual(read('1e-999'), { digits: 1n, scale: 999 });
});

test('a text that is not a decimal number, or only contains one, is not parsed', () => {
  const none = [
    '',
    ' 1',
    '1 ',
    'x1',
    '1x',
    '+1',
    '--1',
    '.5',
    '1.',
    '1.2.3',
    '1,5',
    '1e',
    '1e+',
    '1e1.5',
    '0x10',
    'NaN',
  ];
  for (const text of [...none, '1e1000', '1e-1000', '9'.repeat(41), `1.${'1'.repeat(41)}`])
    assert.equal(parseDecimal(text), undefined, text);
});

test('a positive or negative amount is exact up to fifteen digits, and declined beyond them', () => {
  const most = 999_999_999_999_999;
  assert.equal(toMinor(most, 0), BigInt(most));
  assert.equal(toMinor(-most, 0), -BigInt(most));
  for (const value of [1e15, -1e15, Number.MAX_SAFE_INTEGER, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => toMinor(value, 0), is13, String(value));
  assert.equal(toMinor(99_999_999_999.9999, 4), BigInt(most));
  for (const value of [1e12, 1e300]) assert.throws(() => toMinor(value, 4), is13);
  assert.throws(() => toMinor(90_071_992_547_409.91, 2), is13);
  assert.equal(toMinor(12.5, 2), 1250n);
  assert.equal(toMinor(-12.05, 2), -1205n);
  assert.equal(toMinor(0.0001, 4), 1n);
  assert.throws(() => toMinor(0.005, 2), is13);
});

test('an amount without a known currency is converted to ten-thousandths', () => {
  assert.equal(toUnits(12.5), 125_000n);
  assert.equal(toUnits(-0.0001), -1n);
  assert.equal(toUnits(9_999_999_999_999.99), 99_999_999_999_999_900n);
  assert.equal(toUnits(-9_999_999_999_999.99), -99_999_999_999_999_900n);
  for (const value of [1e13, -1e13, 0.00001, Number.NaN, 1e300])
    assert.throws(() => toUnits(value), is13, String(value));
  assert.equal(toPositiveUnits(0.0001), 1n);
  for (const value of [0, -0, -0.0001]) assert.throws(() => toPositiveUnits(value), is13);
});

test('an amount that must be positive is at least one minor unit', () => {
  assert.equal(toPositiveMinor(0.01, 2), 1n);
  for (const value of [0, -0, -0.01]) assert.throws(() => toPositiveMinor(value, 2), is13);
});

test('an amount is shown as a number, and as a text with all its decimals', () => {
  assert.equal(toNumber({ minor: -1205n, decimals: 2 }), -12.05);
  assert.equal(toNumber({ minor: 7n, decimals: 0 }), 7);
  const text = (minor: bigint, decimals: number) => toText({ minor, decimals });
  assert.deepEqual(
    [
      text(1250n, 2),
      text(-5n, 2),
      text(0n, 2),
      text(0n, 0),
      text(-7n, 0),
      text(1n, 4),
      text(12345n, 3),
      text(99n, 2),
    ],
    ['12.50', '-0.05', '0.00', '0', '-7', '0.0001', '12.345', '0.99'],
  );
});

test('decimal numbers are the same if their values are', () => {
  for (const [one, other] of [
    ['1', '1.0'],
    ['100', '1e2'],
    ['0', '-0.00'],
    ['012.50', '12.5'],
    ['0.001', '1e-3'],
  ] as const)
    assert.equal(isSameDecimal(one, other), true, `${one} ${other}`);
  for (const [one, other] of [
    ['1', '-1'],
    ['1', '10'],
    ['12', '13'],
    ['0', '1'],
    ['1', 'a'],
    ['a', 'a'],
    ['', ''],
  ] as const)
    assert.equal(isSameDecimal(one, other), false, `${one} ${other}`);
});

test('an amount is written with the decimals of its currency', () => {
  assert.deepEqual(moneyIn('KWD', 5n), { minor: 5n, decimals: 3 });
  assert.throws(() => moneyIn('QQQ', 5n), /QQQ is not a currency/);
  assert.equal(textIn('USD', -1250n), '-12.50');
  assert.equal(textIn('USD', 0n), '0.00');
  assert.equal(toSum('JPY', 5n), 'JPY 5');
  assert.deepEqual([0, 2, 4].map(unitOf), [10_000n, 100n, 1n]);
});
