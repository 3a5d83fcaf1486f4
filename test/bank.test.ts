import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { importBank, saveMapping, setBankAccount } from '../src/bank/import.ts';
import { matchBank, matchByHand, unmatch } from '../src/bank/match.ts';
import type { EntryRow } from '../src/bank/queries.ts';
import type { Mapping } from '../src/bank/read.ts';
import { refundFloat } from '../src/books/floats.ts';
import { findReport, makeReport } from '../src/books/reports/index.ts';
import { topUp } from '../src/merchants/floats.ts';
import { type Ledger, openLedger } from './books.ts';
import { make, rowsOf } from './reports.ts';

/** Statements of the operator's bank: imported, matched with the books, and reconciled. */

const MAPPING: Mapping = {
  date: 'Buchungstag',
  dateFormat: 'DD.MM.YYYY',
  amount: 'Betrag',
  decimal: ',',
  texts: ['Zweck'],
  entryReference: null,
  delimiter: ';',
  encoding: 'windows-1252',
};

async function open(t: TestContext): Promise<{ ledger: Ledger; merchantId: number }> {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const { operator } = ledger;
  const { merchant } = await ledger.merchant(0n);
  await setBankAccount(operator, { name: 'House', currency: 'USD', decimals: 2, ownMinor: 50_000n });
  await saveMapping(operator, 'house', MAPPING);
  return { ledger, merchantId: merchant.id };
}

const csv = (rows: readonly string[]) =>
  Buffer.from(`Buchungstag;Zweck;Betrag\n${rows.join('\n')}\n`, 'latin1');
const fromCsv = ({ operator }: Ledger, rows: readonly string[], dryRun = false) =>
  importBank(operator, { account: 'House', bytes: csv(rows), format: 'csv', mapping: 'house' }, dryRun);

/** The amounts of the reconciliation report, by item. */
async function reconciled({ started }: Ledger, to = '2026-03-02'): Promise<Record<string, string>> {
  const kind = findReport('R13');
  assert.ok(kind);
  const { tables } = await makeReport(started.service, kind, { from: '2026-03-01', to });
  const [table] = tables.filter(({ section }) => section === 'reconciliation');
  return Object.fromEntries(
    (table?.rows ?? []).map(([item, amount]) => [item, (amount as { amount: string }).amount]),
  );
}

const put = (ledger: Ledger, merchantId: number, amountMinor: bigint, reference: string) =>
  topUp(ledger.operator, { merchantId, currency: 'USD', amountMinor, reference });

test('an entry that names the reference of a movement of the same amount is matched', async (t) => {
  const { ledger, merchantId } = await open(t);
  await put(ledger, merchantId, 123_450n, 'INV-1001');
  await put(ledger, merchantId, 20_000n, 'INV-1002');
  const { state, entries } = await fromCsv(ledger, [
    '01.03.2026;Zahlung INV-1001 Käse;1.234,50',
    '01.03.2026;fremd;7,00',
  ]);
  assert.deepEqual(
    [state, entries.map(({ amountMinor, description }) => [amountMinor, description])],
    [
      'imported',
      [
        [123_450n, 'Zahlung INV-1001 Käse'],
        [700n, 'fremd'],
      ],
    ],
  );
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
  const { ledger, merchantId } = await open(t);
  await put(ledger, merchantId, 10_000n, 'INV-1');
  await put(ledger, merchantId, 30_000n, 'INV-77');
  await fromCsv(ledger, ['20.02.2026;INV-11;100,00', '20.02.2026;INV-77;300,01']);
  assert.deepEqual(await matchBank(ledger.operator, true), { exact: [], suggested: [] });
});

test('a movement of the same amount within three days is suggested, and matched once accepted', async (t) => {
  const { ledger, merchantId } = await open(t);
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
  const { ledger, merchantId } = await open(t);
  const ids = [];
  for (const [amount, reference] of [
    [10_000n, 'B-1'],
    [5_000n, 'B-2'],
    [9_000n, 'B-3'],
  ] as const)
    ids.push((await put(ledger, merchantId, amount, reference)).transactionId);
  await fromCsv(ledger, ['01.03.2026;zusammen;150,00', '01.03.2026;Teil 1;40,00', '01.03.2026;Teil 2;50,00']);
  const entries = await ledger.sql<EntryRow>('select id from scrip.bank_entries order by id');
  const [whole = 0, one = 0, two = 0] = entries.map(({ id }) => id);
  const [first = '', second = '', third = ''] = ids;
  await assert.rejects(matchByHand(ledger.operator, { entryIds: [whole], movementIds: [first] }), {
    code: '13',
  });
  await assert.rejects(
    matchByHand(ledger.operator, { entryIds: [whole, one], movementIds: [first, second] }),
    { code: '30' },
  );
  await matchByHand(ledger.operator, { entryIds: [whole], movementIds: [first, second] });
  await matchByHand(ledger.operator, { entryIds: [one, two], movementIds: [third] });
  const sums = await reconciled(ledger);
  assert.deepEqual(
    [sums['at the bank, not booked'], sums['booked, not at the bank'], sums['unexplained']],
    ['0.00', '0.00', '0.00'],
  );
  await unmatch(ledger.operator, whole);
  assert.equal((await reconciled(ledger))['at the bank, not booked'], '150.00');
  await assert.rejects(unmatch(ledger.operator, whole), { code: '60' });
});

test('two people who match the same movement at once match it once, and nothing is matched twice', async (t) => {
  const { ledger, merchantId } = await open(t);
  const { operator } = ledger;
  const { transactionId: one } = await put(ledger, merchantId, 10_000n, 'C-1');
  const { transactionId: other } = await put(ledger, merchantId, 10_000n, 'C-2');
  await fromCsv(ledger, ['01.03.2026;links;100,00', '01.03.2026;rechts;100,00']);
  const entries = await ledger.sql<EntryRow>('select id from scrip.bank_entries order by id');
  const ids = entries.map(({ id }) => id);
  const done = await Promise.allSettled(
    ids.map((id) => matchByHand(operator, { entryIds: [id], movementIds: [one] })),
  );
  assert.deepEqual(done.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const place = done.findIndex(({ status }) => status === 'rejected');
  assert.equal((done[place] as PromiseRejectedResult).reason.code, '13');
  const [left = 0, used = 0] = [ids[place], ids[1 - place]];
  for (const [entryIds, movementIds] of [
    [[left], [one, other]],
    [[left, used], [other]],
  ] as const)
    await assert.rejects(matchByHand(operator, { entryIds, movementIds }), { code: '13' });
  await matchByHand(operator, { entryIds: [left], movementIds: [other] });
  assert.equal((await reconciled(ledger))['at the bank, not booked'], '0.00');
});

test('a statement is imported as a whole or not at all, and only once', async (t) => {
  const { ledger } = await open(t);
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
  const damaged = await fromCsv(ledger, ['01.03.2026;d;1,00', '01.03.2026;e\0;1,00'], true);
  assert.deepEqual(damaged.errors, [
    { line: 3, field: 'file', rule: 'csv', message: 'there is a NUL byte: this is no CSV file' },
  ]);
  assert.deepEqual((await fromCsv(ledger, [], true)).errors, [
    { line: 1, field: 'file', rule: 'empty', message: 'the file contains no entry' },
  ]);
});

test('a line whose fields have shifted, a column twice, and an entry of the future are refused', async (t) => {
  const { ledger } = await open(t);
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

const CAMT = (closing: string, entries: string) =>
  Buffer.from(`<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<GrpHdr><MsgId>1</MsgId><CreDtTm>2026-03-02T00:00:00Z</CreDtTm></GrpHdr><Stmt><Id>1</Id><Acct><Id><Othr><Id>X</Id></Othr></Id></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">0</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-01</Dt></Dt></Bal>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">${closing}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-01</Dt></Dt></Bal>
${entries}</Stmt></BkToCstmrStmt></Document>`);

const entry = (amount: string, side: string, reference: string, text: string, status = 'BOOK') =>
  `<Ntry><Amt Ccy="USD">${amount}</Amt><CdtDbtInd>${side}</CdtDbtInd><Sts><Cd>${status}</Cd></Sts><BookgDt><Dt>2026-03-01</Dt></BookgDt>
<AcctSvcrRef>${reference}</AcctSvcrRef><NtryDtls><TxDtls><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`;

test('camt.053 is read with its closing balance, and an unexplained difference is reported', async (t) => {
  const { ledger, merchantId } = await open(t);
  const { operator } = ledger;
  await put(ledger, merchantId, 30_000n, 'TOP-7');
  await refundFloat(operator, {
    merchantId,
    currency: 'USD',
    decimals: 2,
    amountMinor: 1_000n,
    reference: 'BACK-7',
  });
  const entries =
    entry('300.00', 'CRDT', 'E1', 'for TOP-7') +
    entry('10.00', 'DBIT', 'E2', 'BACK-7') +
    entry('9', 'CRDT', 'E3', 'x', 'PDNG');
  const file = { account: 'House', bytes: CAMT('790.01', entries), format: 'camt053' } as const;
  const report = await importBank(operator, file, false);
  assert.deepEqual([report.entries.length, report.closing], [2, { minor: 79_001n, day: '2026-03-01' }]);
  assert.equal((await matchBank(operator, false)).exact.length, 2);
  const sums = await reconciled(ledger);
  assert.deepEqual([sums['expected'], sums['bank'], sums['unexplained']], ['790.00', '790.01', '0.01']);
});

test('an entry of a statement in another currency, and a file of another kind, are refused', async (t) => {
  const { ledger } = await open(t);
  const euro = entry('1.00', 'CRDT', 'E1', 'x').replace('Ccy="USD"', 'Ccy="EUR"');
  for (const [bytes, field, rule] of [
    [CAMT('1.00', euro), 'Amt', 'money'],
    [Buffer.from('not xml'), 'file', 'camt053'],
    [
      CAMT('1.00', entry('1.00', 'CRDT', 'E1', 'x') + entry('2.00', 'CRDT', 'E1', 'y')),
      'reference',
      'repeated',
    ],
  ] as const) {
    const { state, errors } = await importBank(
      ledger.operator,
      { account: 'House', bytes, format: 'camt053' },
      false,
    );
    assert.deepEqual([state, errors[0]?.field, errors[0]?.rule], ['refused', field, rule]);
  }
});
