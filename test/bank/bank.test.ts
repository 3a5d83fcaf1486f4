import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getMapping, saveMapping } from '../../src/bank/csv.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchBank, matchByHand, unmatch } from '../../src/bank/match.ts';
import { openBank, put, reconciled } from '../support/bank.ts';
import type { Ledger } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';

/** Statements of the operator's bank: imported, matched with the books, and reconciled. */

const csv = (rows: readonly string[]) =>
  Buffer.from(`Buchungstag;Zweck;Betrag\n${rows.join('\n')}\n`, 'latin1');
const fromCsv = ({ operator }: Ledger, rows: readonly string[], dryRun = false) =>
  importBank(operator, { account: 'House', bytes: csv(rows), format: 'csv', mapping: 'house' }, dryRun);

test('an entry that names the reference of a movement of the same amount is matched', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  await put(ledger, merchantId, 123_450n, 'INV-1001');
  await put(ledger, merchantId, 20_000n, 'INV-1002');
  const { state, entries } = await fromCsv(ledger, [
    '01.03.2026;Zahlung INV-1001 Käse;1.234,50',
    '01.03.2026;fremd;7,00',
  ]);
  assert.deepEqual(
    [state, entries.map(({ amount, description }) => [amount, description])],
    [
      'imported',
      [
        [123_450n, 'Zahlung INV-1001 Käse'],
        [700n, 'fremd'],
      ],
    ],
  );
  // One that only looks matches nothing.
  assert.equal((await matchBank(ledger.operator, true, true)).exact.length, 1);
  const { exact, suggested } = await matchBank(ledger.operator, false);
  assert.deepEqual([exact.map(({ movement }) => movement.reference), suggested.length], [['INV-1001'], 0]);
  const [booked] = await ledger.sql<{ reference: string }>(
    "select entry_reference as reference from scrip.bank_entries where description like '%INV-1001%'",
  );
  const day = { from: '2026-03-01', to: '2026-03-02', merchantId };
  assert.deepEqual(
    rowsOf(await make(ledger.started.service, 'R6', day)).map((row) => row['bankReference']),
    ['', booked?.reference, '', ''],
  );
  assert.deepEqual(await reconciled(ledger), {
    'own money in the account': '500.00',
    'funding, as booked': '1434.50',
    'at the bank, not booked': '7.00',
    'booked, not at the bank': '-200.00',
    expected: '1741.50',
    bank: '1741.50',
    unexplained: '0.00',
  });
});

test('a reference within another word, or of another amount, is no match', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  await put(ledger, merchantId, 10_000n, 'INV-1');
  await put(ledger, merchantId, 30_000n, 'INV-77');
  await fromCsv(ledger, ['20.02.2026;INV-11;100,00', '20.02.2026;INV-77;300,01']);
  assert.deepEqual(await matchBank(ledger.operator, true), { exact: [], suggested: [], payouts: [] });
});

test('a movement of the same amount within three days is suggested, and matched once accepted', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  await put(ledger, merchantId, 10_000n, 'A-0001');
  await put(ledger, merchantId, 77_700n, 'A-0002');
  await put(ledger, merchantId, 77_700n, 'A-0003');
  await fromCsv(ledger, ['03.03.2026;Zahlung;100,00', '03.03.2026;Zahlung;777,00']);
  const { suggested } = await matchBank(ledger.operator, false);
  // Two movements of 777.00 fit: neither is suggested.
  assert.deepEqual(
    suggested.map(({ movement }) => movement.reference),
    ['A-0001'],
  );
  assert.equal((await matchBank(ledger.operator, true)).suggested.length, 1);
  assert.equal((await matchBank(ledger.operator, true)).suggested.length, 0);
});

test('several entries or movements are matched by hand if their sums are equal', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  const ids = [];
  for (const [amount, reference] of [
    [10_000n, 'B-1'],
    [5_000n, 'B-2'],
    [9_000n, 'B-3'],
  ] as const)
    ids.push((await put(ledger, merchantId, amount, reference)).transactionId);
  await fromCsv(ledger, ['01.03.2026;zusammen;150,00', '01.03.2026;Teil 1;40,00', '01.03.2026;Teil 2;50,00']);
  const entries = await ledger.sql<{ id: string }>('select id::text from scrip.bank_entries order by id');
  const [whole = '', one = '', two = ''] = entries.map(({ id }) => id);
  const [first = '', second = '', third = ''] = ids;
  await assert.rejects(matchByHand(ledger.operator, { entries: [whole], movements: [first] }), {
    code: '13',
  });
  await assert.rejects(matchByHand(ledger.operator, { entries: [whole, one], movements: [first, second] }), {
    code: '30',
  });
  await matchByHand(ledger.operator, { entries: [whole], movements: [first, second] });
  await matchByHand(ledger.operator, { entries: [one, two], movements: [third] });
  const sums = await reconciled(ledger);
  assert.deepEqual(
    [sums['at the bank, not booked'], sums['booked, not at the bank'], sums['unexplained']],
    ['0.00', '0.00', '0.00'],
  );
  await unmatch(ledger.operator, whole);
  assert.equal((await reconciled(ledger))['at the bank, not booked'], '150.00');
  await assert.rejects(unmatch(ledger.operator, whole), { code: 'not-found' });
});

test('two people who match the same movement at once match it once, and nothing is matched twice', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  const { operator } = ledger;
  const { transactionId: one } = await put(ledger, merchantId, 10_000n, 'C-1');
  const { transactionId: other } = await put(ledger, merchantId, 10_000n, 'C-2');
  await fromCsv(ledger, ['01.03.2026;links;100,00', '01.03.2026;rechts;100,00']);
  const entries = await ledger.sql<{ id: string }>('select id::text from scrip.bank_entries order by id');
  const ids = entries.map(({ id }) => id);
  const done = await Promise.allSettled(
    ids.map((id) => matchByHand(operator, { entries: [id], movements: [one] })),
  );
  assert.deepEqual(done.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const place = done.findIndex(({ status }) => status === 'rejected');
  assert.equal((done[place] as PromiseRejectedResult).reason.code, '13');
  const [left = '', used = ''] = [ids[place], ids[1 - place]];
  for (const [entries, movements] of [
    [[left], [one, other]],
    [[left, used], [other]],
  ] as const)
    await assert.rejects(matchByHand(operator, { entries, movements }), { code: '13' });
  await matchByHand(operator, { entries: [left], movements: [other] });
  assert.equal((await reconciled(ledger))['at the bank, not booked'], '0.00');
});

test('a statement is imported as a whole or not at all, and only once', async (t) => {
  const { ledger } = await openBank(t);
  const bad = await fromCsv(ledger, [
    '31.02.2026;a;1,00',
    '01.03.2026;b;1.5',
    '01.03.2026;c;12,345',
    '01.03.2026;d;1,00',
  ]);
  assert.deepEqual(
    [bad.state, bad.errors.map(({ line, field, rule }) => [line, field, rule])],
    [
      'refused',
      [
        [2, 'Buchungstag', 'day'],
        [3, 'Betrag', 'money'],
        [4, 'Betrag', 'money'],
      ],
    ],
  );
  assert.deepEqual(await ledger.sql('select id from scrip.bank_entries'), []);
  assert.equal((await fromCsv(ledger, ['01.03.2026;d;1,00'], true)).state, 'checked');
  await fromCsv(ledger, ['01.03.2026;d;1,00', '01.03.2026;d;1,00']);
  await assert.rejects(fromCsv(ledger, ['01.03.2026;d;1,00', '01.03.2026;d;1,00']), { code: '94' });
  const again = await fromCsv(ledger, ['02.03.2026;e;2,00', '01.03.2026;d;1,00']);
  assert.deepEqual(
    [again.state, again.errors.map(({ line, rule }) => [line, rule])],
    ['refused', [[3, 'imported']]],
  );
  const other = {
    account: 'House',
    bytes: Buffer.from('a;b\n1;2\n'),
    format: 'csv',
    mapping: 'house',
  } as const;
  const columns = await importBank(ledger.operator, other, false);
  assert.deepEqual(
    columns.errors.map(({ field, rule }) => [field, rule]),
    [
      ['Buchungstag', 'column'],
      ['Betrag', 'column'],
      ['Zweck', 'column'],
    ],
  );
  const utf16 = { ...other, bytes: Buffer.from('Buchungstag;Zweck;Betrag\n', 'utf16le') };
  assert.deepEqual((await importBank(ledger.operator, utf16, false)).errors, [
    { line: 1, field: 'file', rule: 'encoding', message: 'the file is in UTF-16: save it in windows-1252' },
  ]);
  const mapping = await getMapping(ledger.operator.service.db, 'house');
  await saveMapping(ledger.operator, 'plain', { ...mapping, encoding: 'utf-8' });
  const latin = Buffer.from('Buchungstag;Zweck;Betrag\n01.03.2026;d;1,00\n01.03.2026;\xfc;1,00\n', 'latin1');
  const [encoding] = (await importBank(ledger.operator, { ...other, bytes: latin, mapping: 'plain' }, true))
    .errors;
  assert.deepEqual([encoding?.line, encoding?.rule], [3, 'encoding']);
  const damaged = await fromCsv(ledger, ['01.03.2026;d;1,00', '01.03.2026;e\0;1,00'], true);
  assert.deepEqual(damaged.errors, [
    { line: 3, field: 'file', rule: 'csv', message: 'there is a NUL byte: this is no CSV file' },
  ]);
  assert.deepEqual((await fromCsv(ledger, [], true)).errors, [
    { line: 1, field: 'file', rule: 'empty', message: 'the file contains no entry' },
  ]);
});

test('a line whose fields have shifted, a column twice, and an entry of the future are refused', async (t) => {
  const { ledger } = await openBank(t);
  const errorsOf = async (lines: readonly string[]) =>
    (await fromCsv(ledger, lines, true)).errors.map(({ line, field, rule }) => [line, field, rule]);
  assert.deepEqual(await errorsOf(['01.03.2026;a;b;1,00', '01.03.2026;a', '01.03.2026;a;1,00;', ';;']), [
    [2, 'row', 'fields'],
    [3, 'row', 'fields'],
    [5, 'Buchungstag', 'day'],
    [5, 'Betrag', 'money'],
  ]);
  const twice = Buffer.from('Buchungstag;Zweck;Betrag;Betrag\n01.03.2026;a;1,00;2,00\n');
  const file = { account: 'House', bytes: twice, format: 'csv', mapping: 'house' } as const;
  const [error] = (await importBank(ledger.operator, file, true)).errors;
  assert.deepEqual([error?.line, error?.field, error?.rule], [1, 'Betrag', 'columnTwice']);
  assert.deepEqual(await errorsOf(['01.03.2199;a;1,00']), [[2, 'date', 'maximum']]);
});
