import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { EXPORT_FORMATS, type ExportWanted, exportBooks } from '../../src/books/export.ts';
import { setGlAccount } from '../../src/books/gl.ts';
import { ACCOUNT_KINDS, type AccountKind } from '../../src/ledger/kinds.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { makeTerms } from '../../src/settlement/terms.ts';
import { type Ledger, openLedger, product, sell, spend } from '../support/books.ts';
import { exportedText } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';
import { close } from '../support/settlements.ts';
import { beanCheck, hledgerCheck, schemaCheck } from '../support/verifiers.ts';

/**
 * Five days of two merchants: sales, redemptions, an update, expiries, commission and a payout; exported,
 * and checked by other programs.
 */

const WHOLE = { from: '2026-03-01', to: '2026-03-06' };
const OPEN_TRANSACTIONS = `select query from pg_stat_activity
  where datname = current_database() and state like 'idle in transaction%'`;

let ledger: Ledger;
let shopId: number;
const t = ofFile();

before(async () => {
  ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const { operator } = ledger;
  const issuer = await ledger.merchant();
  const shop = await ledger.merchant(0n);
  shopId = shop.merchant.id;
  await product(operator, 'SHORT', 'unclaimed');
  const rates = { commission: 1.2345, vat: 19, period: 'day' } as const;
  await makeTerms(operator, { merchantId: String(shopId), from: '2026-03-01', ...rates });
  await sell(issuer, 2, 10, { productCode: 'SHORT' });
  const cards = await sell(issuer, 4, 33.33);
  for (const [index, card] of cards.entries()) await spend(shop, card, 11.11 + index, `=cmd|'${index}'!A1`);
  await ledger.at('2026-03-02T10:00:00Z');
  await updateRedemption(
    { ...shop, now: ledger.started.service.clock() },
    { reference: `=cmd|'0'!A1`, amountUsed: 1 },
  );
  await ledger.at('2026-03-03T10:00:00Z');
  await close(ledger);
  const [draft] = await draftSettlements(operator, { merchantId: shopId });
  await approve(operator, draft?.id ?? 0);
  await pay(operator, {
    settlementId: draft?.id ?? 0,
    reference: 'payout',
    bankReference: 'B',
    valueDate: '2026-03-03',
  });
  await ledger.at('2026-03-06T10:00:00Z');
  await close(ledger);
});

const textOf = (wanted: Partial<ExportWanted> & Pick<ExportWanted, 'format'>) =>
  exportedText(ledger.started.service, { ...WHOLE, ...wanted });

for (const rowByRow of [false, true]) {
  const what = rowByRow ? 'row by row' : 'as sums of days';
  test(`bean-check agrees with every balance of the journal ${what}`, async (t) => {
    const text = await textOf({ format: 'beancount', rowByRow });
    assert.equal((await beanCheck(t, text)) ?? '', '');
    const [line = ''] = /^.* balance Liabilities:Settlements:M\d+ .*$/m.exec(text) ?? [];
    const changed = line.replace(/(?<=\.\d)\d/, (cent) => (cent === '0' ? '1' : '0'));
    const off = await beanCheck(t, text.replace(line, changed));
    if (off !== undefined) assert.match(off, /Balance failed/);
  });

  test(`hledger agrees with every balance of the journal ${what}`, async (t) => {
    assert.equal((await hledgerCheck(t, await textOf({ format: 'hledger', rowByRow }))) ?? '', '');
  });
}

for (const format of EXPORT_FORMATS.filter((each) => each !== 'gl'))
  test(`${format} holds no transaction open while its reader takes a piece`, async () => {
    const held: unknown[] = [];
    const wanted = { ...WHOLE, format, rowByRow: true };
    for await (const _piece of exportBooks(ledger.started.service, wanted))
      held.push(...(await ledger.sql(OPEN_TRANSACTIONS)));
    assert.deepEqual(held, []);
  });

test('rows are in the order of time, and one that is missing ends the export', async () => {
  const lines = (await textOf({ format: 'ndjson' })).trim().split('\n');
  const rows = lines.map((line) => JSON.parse(line) as { occurredAt: string; transactionId: string });
  const keys = rows.map(({ occurredAt, transactionId }) => `${occurredAt} ${transactionId}`);
  assert.deepEqual(keys, keys.toSorted());
  assert.ok(keys.length > 10);
  const flip = `update scrip.book_seals
    set listing = set_byte(listing, 0, get_byte(listing, 0) # 255) where starts_at = '2026-03-01T09:00:00Z'`;
  await ledger.sql(flip);
  try {
    await assert.rejects(textOf({ format: 'ndjson' }), /of 2026-03-01 is missing/);
  } finally {
    await ledger.sql(flip);
  }
});

test('an export from a later day opens with the balances of the day before', async (t) => {
  const text = await textOf({ format: 'beancount', from: '2026-03-03' });
  assert.match(text, /2026-03-02 \* "OPENING"/);
  assert.equal((await beanCheck(t, text)) ?? '', '');
});

test('camt.053 conforms to its schema, and each statement adds up', async (t) => {
  const text = await textOf({ format: 'camt053' });
  assert.equal((await schemaCheck('camt.053.001.08')(t, text)) ?? '', '');
  const cents = (amount = '', side = '') => Math.round(Number(amount) * 100) * (side === 'DBIT' ? -1 : 1);
  const statements = text.split('<Stmt>').slice(1);
  assert.ok(statements.length >= 8);
  for (const statement of statements) {
    const amounts = (tag: string) =>
      [
        ...statement.matchAll(new RegExp(`<${tag}>.*?<Amt Ccy="USD">([\\d.]+)</Amt><CdtDbtInd>(\\w+)`, 'g')),
      ].map(([, amount, side]) => cents(amount, side));
    const [opening = 0, closing = 0] = amounts('Bal');
    assert.equal(
      amounts('Ntry').reduce((sum, each) => sum + each, opening),
      closing,
    );
  }
  const own = await textOf({ format: 'camt053', merchantId: shopId });
  assert.ok(own.includes(`SETTLEMENT-${shopId}-USD`) && !own.includes(`FLOAT-${shopId - 1}-USD`));
});

test('the general ledger lists the accounts without a number, and balances once all have one', async () => {
  await assert.rejects(
    textOf({ format: 'gl' }),
    /no account number for .*FLOAT of merchant.*FUNDING.*product DEFAULT/,
  );
  for (const kind of ACCOUNT_KINDS) await setGlAccount(ledger.operator, { kind, number: numberOf(kind) });
  const ofShop = { merchantId: String(shopId), number: '70001', taxCode: 'V19' };
  await setGlAccount(ledger.operator, { kind: 'SETTLEMENT', ...ofShop });
  for (const rowByRow of [false, true]) {
    const [header, ...lines] = (await textOf({ format: 'gl', rowByRow })).trim().split('\r\n');
    assert.equal(
      header,
      'date,voucherNumber,account,counterAccount,debit,credit,currency,taxCode,text,kind,closingHash',
    );
    const cells = lines.map((line) => line.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/));
    const sum = (at: number) => cells.reduce((total, cell) => total + Math.round(Number(cell[at]) * 100), 0);
    assert.ok(sum(4) > 0);
    assert.equal(sum(4), sum(5));
    assert.ok(cells.some((cell) => cell[2] === '70001' && cell[7] === 'V19'));
    await keepsNumbers(rowByRow, cells);
  }
});

const numberOf = (kind: AccountKind) => String(1000 + ACCOUNT_KINDS.indexOf(kind));

/** A voucher number belongs to what was booked: it does not change with the account numbers. */
async function keepsNumbers(rowByRow: boolean, cells: readonly string[][]): Promise<void> {
  // Top-ups stay within one account number, so they are left out.
  await setGlAccount(ledger.operator, { kind: 'FUNDING', number: numberOf('FLOAT') });
  const after = (await textOf({ format: 'gl', rowByRow })).trim().split('\r\n').slice(1);
  await setGlAccount(ledger.operator, { kind: 'FUNDING', number: numberOf('FUNDING') });
  const keyOf = ([date, number, , , , , currency, , , kind]: readonly string[]) =>
    `${date} ${number} ${currency} ${kind}`;
  const before = new Set(cells.map(keyOf));
  assert.ok(after.length < cells.length);
  assert.deepEqual(
    after.map((line) => keyOf(line.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/))).filter((key) => !before.has(key)),
    [],
  );
}

test('CSV has every row, and escapes a reference that a spreadsheet would run', async () => {
  const text = await textOf({ format: 'csv' });
  const [{ rows } = { rows: 0n }] = await ledger.sql<{ rows: bigint }>(
    `select count(*) as rows from scrip.journal where occurred_at < '2026-03-06'`,
  );
  assert.equal(text.trim().split('\r\n').length, Number(rows) + 1);
  assert.ok(text.includes(`,'=cmd|'0'!A1,`));
  assert.ok(!/,=cmd/.test(text));
});

test('NDJSON has the rows of the CSV, with texts as they are', async () => {
  const [header = '', ...lines] = (await textOf({ format: 'csv' })).trim().split('\r\n');
  const rows = (await textOf({ format: 'ndjson' }))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, string | null>);
  assert.equal(rows.length, lines.length);
  assert.deepEqual(Object.keys(rows[0] ?? {}), header.split(','));
  assert.ok(rows.every(({ amount }) => /^\d+\.\d\d$/.test(amount ?? '')));
  assert.ok(rows.some(({ reference }) => reference === "=cmd|'0'!A1"));
  assert.ok(rows.every(({ debitMerchantId: id }) => id === null || typeof id === 'string'));
});

test('an export of the same days has the same bytes, and an open day is refused by its date', async () => {
  for (const format of ['beancount', 'hledger', 'camt053', 'csv', 'ndjson'] as const)
    assert.equal(await textOf({ format }), await textOf({ format }));
  await assert.rejects(textOf({ format: 'csv', to: '2026-03-08' }), /2026-03-06 is not closed/);
});
