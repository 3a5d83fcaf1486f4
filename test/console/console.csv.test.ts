import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guessColumns } from '../../console/src/pages/bank-columns.ts';
import { transferCode } from '../../console/src/portal-pages/transfer-code.ts';
import { readAmounts, readCsv } from '../../console/src/ui/csv-table.ts';

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

test('a column whose name is repeated has another one, and a column without a name is left out', () => {
  const { columns, rows } = readCsv('ref;amount;amount;amount (2);;\na;1;2;3;x;y\n');
  assert.deepEqual(columns, ['ref', 'amount', 'amount (2)', 'amount (2) (2)']);
  assert.deepEqual(
    rows.map(({ of }) => columns.map((column) => of[column])),
    [['a', '1', '2', '3']],
  );
});

test('the rows of a file are counted as in a spreadsheet', () => {
  const { columns, rows } = readCsv('\uFEFFref;amount\r\na;"1,5\n0"\r\n\r\n"b;c";2\r\n');
  assert.deepEqual(columns, ['ref', 'amount']);
  assert.deepEqual(rows, [
    { line: 2, of: { ref: 'a', amount: '1,5\n0' } },
    { line: 4, of: { ref: 'b;c', amount: '2' } },
  ]);
});

test('the columns of a bank are guessed from its file', () => {
  const german =
    'Buchungstag;Verwendungszweck;Empfänger;Betrag;Währung\n31.12.2026;Gebühr;Bank;-1.234,50;EUR\n';
  assert.deepEqual(guessColumns(Buffer.from(german, 'latin1')), {
    delimiter: ';',
    encoding: 'windows-1252',
    decimal: ',',
    dateFormat: 'DD.MM.YYYY',
    date: 'Buchungstag',
    amount: 'Betrag',
    texts: ['Verwendungszweck', 'Empfänger'],
    currency: 'Währung',
  });
  const american = 'Date,Description,Amount\n12/31/2026,"Wire, FLOAT 7","1,250.00"\n';
  assert.deepEqual(guessColumns(Buffer.from(american)), {
    delimiter: ',',
    encoding: 'utf-8',
    decimal: '.',
    dateFormat: 'MM/DD/YYYY',
    date: 'Date',
    amount: 'Amount',
    texts: ['Description'],
  });
  const bare = guessColumns(Buffer.from('a,b\n2026-12-31,1\n'));
  assert.deepEqual([bare.date, bare.amount, bare.texts], [undefined, undefined, undefined]);
});

test('the code for a transfer has its lines in the order of the European Payments Council', () => {
  const code = transferCode({ holder: 'Example Ltd', iban: 'DE89370400440532013000', reference: 'FLOAT 5' });
  const lines = [
    'BCD',
    '002',
    '1',
    'SCT',
    '',
    'Example Ltd',
    'DE89370400440532013000',
    '',
    '',
    '',
    'FLOAT 5',
  ];
  assert.deepEqual(code.split('\n'), lines);
});
