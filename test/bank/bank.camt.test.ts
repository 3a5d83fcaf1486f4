import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importBank } from '../../src/bank/import.ts';
import { matchBank } from '../../src/bank/match.ts';
import { refundFloat } from '../../src/books/floats.ts';
import { openBank, put, reconciled } from '../support/bank.ts';

/** Statements of the operator's bank in camt.053. */

const CAMT = (closing: string, entries: string) =>
  Buffer.from(`<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<GrpHdr><MsgId>1</MsgId><CreDtTm>2026-03-02T00:00:00Z</CreDtTm></GrpHdr><Stmt><Id>1</Id><Acct><Id><Othr><Id>X</Id></Othr></Id></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">0</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-01</Dt></Dt></Bal>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">${closing}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-01</Dt></Dt></Bal>
${entries}</Stmt></BkToCstmrStmt></Document>`);

const entry = (amount: string, side: string, reference: string, text: string, status = 'BOOK') =>
  `<Ntry><Amt Ccy="USD">${amount}</Amt><CdtDbtInd>${side}</CdtDbtInd><Sts><Cd>${status}</Cd></Sts><BookgDt><Dt>2026-03-01</Dt></BookgDt>
<AcctSvcrRef>${reference}</AcctSvcrRef><NtryDtls><TxDtls><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`;

test('a statement of a quiet day has no entries, and its closing balance is taken', async (t) => {
  const { ledger } = await openBank(t);
  const pending = entry('5.00', 'CRDT', 'N1', 'not booked yet', 'PDNG');
  const file = { account: 'House', bytes: CAMT('500.00', pending), format: 'camt053' } as const;
  const { state, errors, entries } = await importBank(ledger.operator, file, false);
  assert.deepEqual([state, errors, entries], ['imported', [], []]);
  assert.equal((await reconciled(ledger))['bank'], '500.00');
  const nothing = { ...file, bytes: Buffer.from(file.bytes.toString().replaceAll('CLBD', 'PRCD')) };
  const refused = await importBank(ledger.operator, nothing, true);
  assert.deepEqual(
    refused.errors.map(({ rule }) => rule),
    ['empty'],
  );
});

test('camt.053 is read with its closing balance, and an unexplained difference is reported', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  const { operator } = ledger;
  await put(ledger, merchantId, 30_000n, 'TOP-7');
  await refundFloat(operator, {
    merchantId,
    currency: 'USD',
    amountMinor: 1_000n,
    reference: 'BACK-7',
  });
  const entries =
    entry('300.00', 'CRDT', 'E1', 'for TOP-7') +
    entry('10.00', 'DBIT', 'E2', 'BACK-7') +
    entry('9', 'CRDT', 'E3', 'x', 'PDNG');
  const file = { account: 'House', bytes: CAMT('790.01', entries), format: 'camt053' } as const;
  const report = await importBank(operator, file, false);
  assert.deepEqual([report.entries.length, report.closing], [2, { day: '2026-03-01', amount: 79_001n }]);
  assert.equal((await matchBank(operator, false)).exact.length, 2);
  const sums = await reconciled(ledger);
  assert.deepEqual([sums['expected'], sums['bank'], sums['unexplained']], ['790.00', '790.01', '0.01']);
});

test('an entry of a statement in another currency, and a file of another kind, are refused', async (t) => {
  const { ledger } = await openBank(t);
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
