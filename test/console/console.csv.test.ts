import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAmounts, readCsv } from '../../console/src/portal-pages/csv.ts';

test('an amount with two meanings is read like the others of its file, or else in the language of the page', () => {
  for (const [texts, english, german] of [
    [['1,234'], [1234], [1.234]],
    [['1.234'], [1.234], [1234]],
    [
      ['1.234', '5,50'],
      [1234, 5.5],
      [1234, 5.5],
    ],
    [
      ['1,234', '5.50'],
      [1234, 5.5],
      [1234, 5.5],
    ],
    [
      ['1,234', '-1,234.50'],
      [1234, -1234.5],
      [1234, -1234.5],
    ],
    [
      ['1,234', '5.50', '6,50'],
      [1234, 5.5, 6.5],
      [1.234, 5.5, 6.5],
    ],
    [
      ['12,50 €', 'EUR 1.234,00', ' 7 '],
      [12.5, 1234, 7],
      [12.5, 1234, 7],
    ],
    [['1e3', '12.50-', '', 'n/a'], [undefined, undefined, undefined, undefined], Array(4).fill(undefined)],
  ] as const) {
    assert.deepEqual(readAmounts(texts, 'en'), english, `${texts} in English`);
    assert.deepEqual(readAmounts(texts, 'de'), german, `${texts} in German`);
  }
});

test('the rows of a file are counted as in a spreadsheet', () => {
  const { columns, rows } = readCsv('\uFEFFref;amount\r\na;"1,5\n0"\r\n\r\n"b;c";2\r\n');
  assert.deepEqual(columns, ['ref', 'amount']);
  assert.deepEqual(rows, [
    { line: 2, of: { ref: 'a', amount: '1,5\n0' } },
    { line: 4, of: { ref: 'b;c', amount: '2' } },
  ]);
});
