import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setBankAccount } from '../../src/bank/accounts.ts';
import { saveMapping } from '../../src/bank/csv.ts';
import { type BankFile, importBank } from '../../src/bank/import.ts';
import { openBank, reconciled } from '../support/bank.ts';
import { type Ledger, openLedger } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';

/** Statements in the forms in which banks send them, and files that are not whole. */

const IBAN = 'DE89370400440532013000';
const OTHER = 'GB29NWBK60161331926819';

type Entry = {
  amount?: string;
  side?: string;
  reference?: string | null;
  number?: string;
  text?: string;
  details?: string;
  day?: string;
};

const entry = ({ amount = '5.00', side = 'CRDT', text = 'x', day = '2026-03-01', ...more }: Entry) =>
  `<Ntry>${more.number ? `<NtryRef>${more.number}</NtryRef>` : ''}<Amt Ccy="USD">${amount}</Amt>` +
  `<CdtDbtInd>${side}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>${day}</Dt></BookgDt>` +
  `${more.reference ? `<AcctSvcrRef>${more.reference}</AcctSvcrRef>` : ''}<NtryDtls><TxDtls>` +
  `${more.details ?? `<RmtInf><Ustrd>${text}</Ustrd></RmtInf>`}</TxDtls></NtryDtls></Ntry>`;

type Stated = {
  id?: string;
  iban?: string | null;
  currency?: string;
  opening?: string;
  closing?: string;
  day?: string;
};

const balance = (code: string, amount: string | undefined, day: string) =>
  amount === undefined
    ? ''
    : `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="USD">${amount}</Amt>` +
      `<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>${day}</Dt></Dt></Bal>`;

const statement = (entries: readonly Entry[], { id = '1', iban = IBAN, ...more }: Stated = {}) =>
  `<Stmt><Id>${id}</Id>${
    iban === null
      ? ''
      : `<Acct><Id><IBAN>${iban}</IBAN></Id>${more.currency ? `<Ccy>${more.currency}</Ccy>` : ''}</Acct>`
  }${balance('OPBD', more.opening, more.day ?? '2026-03-01')}` +
  `${balance('CLBD', more.closing, more.day ?? '2026-03-01')}${entries.map(entry).join('')}</Stmt>`;

const camt = (statements: string, declared = 'UTF-8') =>
  `<?xml version="1.0" encoding="${declared}"?>\n<Document><BkToCstmrStmt>${statements}</BkToCstmrStmt></Document>`;

async function read({ operator }: Ledger, file: string | Buffer, dryRun = false) {
  const bytes = typeof file === 'string' ? Buffer.from(file) : file;
  const report = await importBank(operator, { account: 'House', bytes, format: 'camt053' }, dryRun);
  return {
    state: report.state,
    errors: report.errors.map(({ rule, field }) => `${field} ${rule}`),
    notes: report.notes.map(({ rule }) => rule),
    entries: report.entries.map(({ amount, description }) => `${amount} ${description}`),
  };
}

test('entries without a reference, or with one that stands for none, are told apart by their place', async (t) => {
  const { ledger } = await openBank(t);
  for (const reference of ['NONREF', 'NOTPROVIDED', null]) {
    const twice = { reference, text: `of ${reference}` };
    const { state, errors } = await read(ledger, camt(statement([twice, twice], { id: `${reference}` })));
    assert.deepEqual([state, errors], ['imported', []], String(reference));
  }
  // A bank that numbers the entries of each statement from 1 on, and the statements of each year.
  for (const [id, day] of [
    ['7', '2026-03-01'],
    ['8', '2026-03-02'],
    ['8', '2026-03-03'],
  ] as const) {
    const numbered = ['1', '2'].map((number) => ({ number, day, text: `${id} ${number}` }));
    assert.equal((await read(ledger, camt(statement(numbered, { id })))).state, 'imported', day);
  }
  const again = await read(ledger, camt(`${statement([{ number: '1', day: '2026-03-03' }], { id: '8' })} `));
  assert.deepEqual(again.errors, ['reference imported']);
});

test('an entry of 0 informs, and is left out with a note', async (t) => {
  const { ledger } = await openBank(t);
  const entries = [{ amount: '0.00', reference: 'A' }, { reference: 'B' }];
  const { state, notes, entries: found } = await read(ledger, camt(statement(entries)));
  assert.deepEqual([state, notes, found], ['imported', ['zero', 'newNumber'], ['500 x']]);
});

test('a file is read in the encoding that it declares or begins with, and refused in another', async (t) => {
  const { ledger } = await openBank(t);
  const file = (declared: string) =>
    camt(statement([{ reference: 'A', text: 'Käse &#252; &#xFC; &amp;' }]), declared);
  const readable: readonly [string, Buffer][] = [
    ['UTF-8', Buffer.from(file('UTF-8'))],
    ['ISO-8859-1', Buffer.from(file('ISO-8859-1'), 'latin1')],
    ['windows-1252', Buffer.from(file('windows-1252'), 'latin1')],
    ['UTF-16', Buffer.from(`\ufeff${file('UTF-16')}`, 'utf16le')],
    ['UTF-16 without a mark', Buffer.from(file('UTF-16'), 'utf16le')],
    ['UTF-16, big end first', Buffer.from(`\ufeff${file('UTF-16')}`, 'utf16le').swap16()],
  ];
  for (const [name, bytes] of readable)
    assert.deepEqual((await read(ledger, bytes, true)).entries, ['500 Käse ü ü &'], name);
  const unreadable: readonly [string, Buffer][] = [
    ['latin bytes as UTF-8', Buffer.from(file('UTF-8'), 'latin1')],
    ['UTF-8 as UTF-16', Buffer.from(file('UTF-16'))],
    ['an unknown encoding', Buffer.from(file('EBCDIC-7'))],
  ];
  for (const [name, bytes] of unreadable)
    assert.deepEqual((await read(ledger, bytes, true)).errors, ['file xml'], name);
});

test('a document that was cut off, or declares types or entities, is refused', async (t) => {
  const { ledger } = await openBank(t);
  const whole = camt(statement([{ reference: 'A' }]) + statement([{ reference: 'B' }], { id: '2' }));
  const bad: Readonly<Record<string, string>> = {
    'cut after a statement': whole.slice(0, whole.indexOf('</Stmt>') + 7),
    'cut in a tag': whole.slice(0, whole.lastIndexOf('</Stmt>') + 3),
    'without its end': whole.slice(0, -3),
    'a type': whole.replace('<Document>', '<!DOCTYPE Document><Document>'),
    'an entity': whole
      .replace('<Document>', '<!DOCTYPE a [<!ENTITY e "x">]><Document>')
      .replace('>x<', '>&e;<'),
    'an unknown entity': whole.replace('>x<', '>&e;<'),
    'text after the end': `${whole}x`,
    'a second document': `${whole}<Document/>`,
    'crossed tags': whole.replace('</TxDtls></NtryDtls>', '</NtryDtls></TxDtls>'),
    'a control character': whole.replace('>x<', '>\u0001<'),
    'an attribute twice': whole.replace('Ccy="USD"', 'Ccy="USD" Ccy="USD"'),
  };
  for (const [name, file] of Object.entries(bad))
    assert.deepEqual((await read(ledger, file)).errors, ['file xml'], name);
  assert.deepEqual(await ledger.sql('select id from scrip.bank_entries'), []);
  assert.equal((await read(ledger, whole, true)).state, 'checked');
});

test('an amount with a sign, or without a side, is refused', async (t) => {
  const { ledger } = await openBank(t);
  for (const bad of [{ amount: '-10.00' }, { amount: '1e2' }, { side: 'X' }])
    assert.deepEqual((await read(ledger, camt(statement([{ reference: 'A', ...bad }])))).errors, [
      'Amt money',
    ]);
});

test('structured references are read', async (t) => {
  const { ledger } = await openBank(t);
  const details =
    '<RmtInf><Strd><RfrdDocInf><Nb>INV-7</Nb></RfrdDocInf><CdtrRefInf><Ref>RF18539007547034</Ref></CdtrRefInf>' +
    '<AddtlRmtInf>5-2026-0001</AddtlRmtInf></Strd></RmtInf>';
  const { entries } = await read(ledger, camt(statement([{ reference: 'A', details }])), true);
  assert.deepEqual(entries, ['500 RF18539007547034 INV-7 5-2026-0001']);
});

test('the first statement tells the number of the account, and those of another one are refused', async (t) => {
  const { ledger } = await openBank(t);
  const both = (id: string) =>
    statement([{ reference: `A${id}` }], { id }) + statement([{ reference: `B${id}` }], { id, iban: OTHER });
  assert.deepEqual((await read(ledger, camt(both('1')))).errors, ['file accounts']);
  const first = await read(
    ledger,
    camt(statement([{ reference: 'A0' }], { iban: 'de89 3704 0044 0532 0130 00' })),
  );
  assert.deepEqual([first.state, first.notes], ['imported', ['newNumber']]);
  const { state, notes, entries } = await read(ledger, camt(both('1')));
  assert.deepEqual([state, notes, entries], ['imported', ['otherAccount'], ['500 x']]);
  for (const wrong of [{ iban: OTHER }, { currency: 'EUR' }])
    assert.deepEqual((await read(ledger, camt(statement([], wrong)))).errors, ['file account']);
  const account = { name: 'House', currency: 'USD' };
  await setBankAccount(ledger.operator, { ...account, iban: OTHER });
  assert.equal(
    (await read(ledger, camt(statement([{ reference: 'C' }], { iban: OTHER })))).state,
    'imported',
  );
});

test('a gap between statements, and entries that are missing in one, are named', async (t) => {
  const { ledger } = await openBank(t);
  await ledger.close();
  const day = (amount: string, stated: Stated) =>
    read(
      ledger,
      camt(statement([{ amount, reference: `R ${stated.day}`, day: stated.day as string }], stated)),
    );
  const days: readonly (readonly [string, Stated, readonly string[]])[] = [
    ['5.00', { opening: '500.00', closing: '505.00', day: '2026-03-01' }, ['newNumber']],
    ['5.00', { opening: '505.00', closing: '510.00', day: '2026-03-02' }, []],
    ['7.00', { opening: '520.00', closing: '527.00', day: '2026-03-04' }, ['gap']],
    ['7.00', { opening: '527.00', closing: '535.00', day: '2026-03-05' }, ['missing']],
  ];
  for (const [amount, stated, notes] of days)
    assert.deepEqual((await day(amount, { id: String(stated.day), ...stated })).notes, notes, stated.day);
  await ledger.at('2026-03-06T09:00:00Z');
  const report = await make(ledger.started.service, 'R13', { from: '2026-03-01', to: '2026-03-06' });
  const tables = report.tables.filter(({ section }) => section === 'statements');
  assert.deepEqual(
    rowsOf({ ...report, tables }).map((row) => [row['date'], row['gap'], row['missing'], row['state']]),
    [
      ['2026-03-01', '', '0.00', 'ok'],
      ['2026-03-02', '0.00', '0.00', 'ok'],
      ['2026-03-04', '10.00', '0.00', 'GAP'],
      ['2026-03-05', '0.00', '1.00', 'INCOMPLETE'],
    ],
  );
});

test('own money changes from a day on, and not on closed days', async (t) => {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const own = (amount: number, more: { from?: string } = {}) =>
    setBankAccount(ledger.operator, { name: 'House', currency: 'USD', own: amount, ...more });
  const ownOf = async (to: string) => (await reconciled(ledger, to))['own money in the account'];
  await own(500);
  await ledger.close();
  await ledger.at('2026-03-03T00:20:00Z');
  await ledger.close();
  assert.equal(await ownOf('2026-03-02'), '500.00');
  await own(600);
  await assert.rejects(own(700, { from: '2026-03-02' }), { code: '17' });
  assert.deepEqual(
    [await ownOf('2026-03-02'), await ownOf('2026-03-03'), await ownOf('2026-03-04')],
    ['500.00', '500.00', '600.00'],
  );
});

test('a row of another currency or account in CSV is refused', async (t) => {
  const { ledger } = await openBank(t);
  const { operator } = ledger;
  await saveMapping(operator, 'house', {
    ...{ date: 'date', dateFormat: 'YYYY-MM-DD', amount: 'amount', decimal: '.', texts: ['text'] },
    ...{
      entryReference: null,
      currency: 'currency',
      accountNumber: 'iban',
      delimiter: ',',
      encoding: 'utf-8',
    },
  });
  await setBankAccount(operator, { name: 'House', currency: 'USD', iban: IBAN });
  const rows = ['2026-03-01,5.00,a,USD,DE89 3704 0044 0532 0130 00', `2026-03-01,5.00,b,EUR,${IBAN}`];
  const bytes = Buffer.from(
    `date,amount,text,currency,iban\n${rows.join('\n')}\n2026-03-01,1,c,USD,${OTHER}\n`,
  );
  const file: BankFile = { account: 'House', bytes, format: 'csv', mapping: 'house' };
  const { errors } = await importBank(operator, file, true);
  assert.deepEqual(
    errors.map(({ line, field, rule }) => [line, field, rule]),
    [
      [3, 'currency', 'currency'],
      [4, 'iban', 'account'],
    ],
  );
});
