import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Account, Balance, ClosedDay, Movement } from '../../src/books/export.rows.ts';
import { beginCamt, beginStatement, endCamt, endStatement, entry } from '../../src/books/formats.ts';
import { PlainText, type PlainTextFormat } from '../../src/books/plain-text.ts';
import type { Names } from '../../src/books/reports/report.ts';
import { beanCheck, hledgerCheck, schemaCheck } from '../support/verifiers.ts';

/**
 * The writers of exports, with a made-up day. Its names and references hold characters that could end a
 * line, a field or an element.
 */

const DAY: ClosedDay = {
  day: '2026-03-29',
  startsAt: new Date('2026-03-28T23:00:00Z'),
  endsAt: new Date('2026-03-29T22:00:00Z'),
  zone: 'Europe/Berlin',
  closedAt: new Date('2026-03-29T22:20:00Z'),
  hash: 'ab'.repeat(32),
  number: 7,
};
const HOSTILE = 'A "b" \\ <c> & ; | \n 2026-01-01 open Assets:X';
const NAMES: Names = {
  merchants: new Map([[5, HOSTILE]]),
  products: new Map([[1, { id: 1, code: 'DEFAULT', scope: 'network', expiryPolicy: 'operator' }]]),
};
const account = (kind: string, merchantId = 0, productId = 0): Account => ({
  kind,
  currency: 'USD',
  merchantId,
  productId,
});
const [funding, float, voucher] = [account('FUNDING'), account('FLOAT', 5), account('VOUCHER', 5, 1)];
const settlement = account('SETTLEMENT', 5);

function movement(
  kind: string,
  debit: Account,
  credit: Account,
  amountMinor: bigint,
  reference: string | null,
): Movement {
  const occurredAt = new Date('2026-03-29T09:00:00.123Z');
  const id = '019d3000-0000-7000-8000-00000000000a';
  return {
    id,
    occurredAt,
    bookedAt: occurredAt,
    kind,
    debit,
    credit,
    rows: 1,
    amountMinor,
    currency: 'USD',
    serialNumber: null,
    reference,
    originalId: null,
  };
}

const MOVEMENTS = [
  movement('TOP_UP', funding, float, 10_000n, HOSTILE),
  movement('IMPORT', float, voucher, 2_500n, null),
  movement('REDEMPTION', voucher, settlement, 101n, '='.repeat(100)),
];
const OPENING: Balance[] = [
  { ...funding, balanceMinor: -500n },
  { ...float, balanceMinor: 500n },
];
const CLOSING: Balance[] = [
  { ...funding, balanceMinor: -10_500n },
  { ...float, balanceMinor: 8_000n },
  { ...voucher, balanceMinor: 2_399n },
  { ...settlement, balanceMinor: 101n },
];

function plainText(format: PlainTextFormat, closing = CLOSING): string {
  const journal = new PlainText(format, NAMES);
  return [
    journal.begin([DAY], OPENING),
    ...MOVEMENTS.map((each) => journal.movement(DAY.day, each)),
    journal.end(DAY.day, closing, true),
  ].join('');
}

const off = CLOSING.map((each) => ({
  ...each,
  balanceMinor: each.balanceMinor + (each.kind === 'FLOAT' ? 1n : 0n),
}));

test('bean-check accepts a day, and rejects one whose balance is off by a cent', async (t) => {
  assert.equal((await beanCheck(t, plainText('beancount'))) ?? '', '');
  const found = await beanCheck(t, plainText('beancount', off));
  if (found !== undefined) assert.match(found, /Balance failed for 'Liabilities:Floats:M5'/);
});

test('hledger is told how amounts of each currency are written', () => {
  const journal = new PlainText('hledger', NAMES);
  const yen = OPENING.map((each) => ({ ...each, currency: 'JPY' }));
  const text = journal.begin([DAY], [...OPENING, ...yen]);
  assert.deepEqual(text.match(/^commodity .*$/gm), ['commodity 0.00 USD', 'commodity 0. JPY']);
});

test('hledger accepts a day, and rejects one whose balance is off by a cent', async (t) => {
  assert.equal((await hledgerCheck(t, plainText('hledger'))) ?? '', '');
  const found = await hledgerCheck(t, plainText('hledger', off));
  if (found !== undefined) assert.match(found, /balance assertion/i);
});

function camt(): string {
  const entries = [MOVEMENTS[0] as Movement, MOVEMENTS[1] as Movement].map((each) =>
    entry(DAY.day, float, each),
  );
  const balances = { openingMinor: 500n, closingMinor: 8_000n };
  return [
    beginCamt([DAY, DAY]),
    beginStatement(DAY, float, balances, NAMES),
    ...entries,
    endStatement,
    endCamt,
  ].join('');
}

test('camt.053 conforms to its schema with any characters in names and references', async (t) => {
  const check = schemaCheck('camt.053.001.08');
  assert.equal((await check(t, camt())) ?? '', '');
  const found = await check(t, camt().replace('<Sts>', '<Sats>').replace('</Sts>', '</Sats>'));
  if (found !== undefined) assert.match(found, /Sats/);
});

test('a movement is a debit in the statement of the account it is taken from', () => {
  const text = camt();
  assert.deepEqual(
    [...text.matchAll(/<Ntry><Amt Ccy="USD">([\d.]+)<\/Amt><CdtDbtInd>(\w+)</g)].map(([, amount, side]) => [
      amount,
      side,
    ]),
    [
      ['100.00', 'CRDT'],
      ['25.00', 'DBIT'],
    ],
  );
});
