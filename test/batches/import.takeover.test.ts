import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bankMovements } from '../../src/bank/entries.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchBank } from '../../src/bank/match.ts';
import { importVouchers } from '../../src/batches/import.ts';
import { escheat } from '../../src/books/escheat.ts';
import { setDormancyRule } from '../../src/books/rules.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { openBank, reconciled } from '../support/bank.ts';
import { openLedger } from '../support/books.ts';
import { differing, namesOfDiffering } from '../support/differing.ts';
import { fileOf } from '../support/folder.ts';
import { codesOf, csvOf } from '../support/imports.ts';
import { make, rowsOf } from '../support/reports.ts';

/** Vouchers that were sold and used in another system keep the age of their money. */

const RUN = { dryRun: false };
const RULE = { from: '2026-03-02', productId: 0 };
const RULES = {
  format: 'csv',
  codes: 'exact',
  missingPin: 'refuse',
  product: 'DEFAULT',
  expiry: null,
} as const;

test('the reports count the age of imported money from its issue and last use in the other system', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator, started } = ledger;
  const { service } = started;
  const issuer = await ledger.merchant(0n);
  const [idle = '', used = '', fresh = ''] = codesOf(3);
  const rows = [
    'code,pin,balance,expiry,ISSUEDAT,lastUsedAt',
    `${idle},1234,10.00,2035-06-30,2022-12-31,`,
    `${used},1234,20.00,2035-06-30,2023-02-01T12:00:00Z,2025-11-02`,
    `${fresh},1234,40.00,2035-06-30,,`,
  ];
  const file = await fileOf(t, 'cards.csv', `${rows.join('\r\n')}\r\n`);
  const wanted = { merchantId: issuer.merchant.id, file, rules: RULES, paidFrom: 'funding' } as const;
  assert.equal((await importVouchers(operator, wanted, RUN)).state, 'imported');
  await setDormancyRule(operator, { ...RULE, name: 'issue', basis: 'issue', months: 36 });
  await setDormancyRule(operator, { ...RULE, name: 'use', basis: 'last-use', months: 3 });
  await ledger.at('2026-03-03T09:00:00Z');
  await ledger.close();
  const day = { from: '2026-03-02', to: '2026-03-03' };
  const dormant = async (interval: typeof day) =>
    rowsOf(await make(service, 'R10', interval)).map((row) =>
      ['rule', 'issuedOn', 'lastUsedOn', 'dueOn', 'balance'].map((column) => row[column]),
    );
  assert.deepEqual(await dormant(day), [
    ['issue', '2022-12-31', '2022-12-31', '2025-12-31', '10.00'],
    ['issue', '2023-02-01', '2025-11-02', '2026-02-01', '20.00'],
    ['use', '2022-12-31', '2022-12-31', '2023-03-31', '10.00'],
    ['use', '2023-02-01', '2025-11-02', '2026-02-02', '20.00'],
  ]);
  const ages = rowsOf(await make(service, 'R4', day)).filter(({ basis }) => basis === 'idle');
  assert.deepEqual(
    ages.filter(({ vouchers }) => vouchers !== '0').map(({ days, outstanding }) => [days, outstanding]),
    [
      ['0-30', '40.00'],
      ['91-180', '20.00'],
      ['>365', '10.00'],
    ],
  );
  const cohorts = rowsOf(await make(service, 'R5', day), 'cohorts');
  assert.deepEqual(
    cohorts.map(({ issueMonth, monthsSince, issued }) => [issueMonth, monthsSince, issued]),
    [
      ['2022-12', '39', '10.00'],
      ['2023-02', '37', '20.00'],
      ['2026-03', '0', '40.00'],
    ],
  );
  // A replacement is as old as the voucher that it replaces; a redemption is a use.
  const [voucher] = await ledger.sql<{ serial: bigint }>(
    'select serial_number as serial from scrip.vouchers where balance_minor = 2000',
  );
  assert.ok(voucher);
  await replaceVoucher(operator, voucher.serial);
  await redeem({ ...issuer, now: service.clock() }, { code: idle, pin: '1234', amount: 1 });
  await ledger.at('2026-03-04T09:00:00Z');
  await ledger.close();
  const after = await dormant({ from: '2026-03-03', to: '2026-03-04' });
  assert.deepEqual(after, [
    ['issue', '2022-12-31', '2026-03-03', '2025-12-31', '9.00'],
    ['issue', '2023-02-01', '2025-11-02', '2026-02-01', '20.00'],
    ['use', '2023-02-01', '2025-11-02', '2026-02-02', '20.00'],
  ]);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
  for (const sinceClosing of [false, true]) assert.deepEqual(await differing(service, { sinceClosing }), []);
});

test('unclaimed money is taken over by voucher, with the age that it has in the other system', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator, started } = ledger;
  const { service } = started;
  const issuer = await ledger.merchant(0n);
  const decimals = { ...productDefaults('USD', 2), expiryPolicy: 'unclaimed' } as const;
  await createProduct(operator, { ...decimals, code: 'OLD', name: 'Old' });
  const [lapsed = '', undated = '', other = ''] = codesOf(3);
  const wantedOf = async (rows: readonly string[]) => ({
    merchantId: issuer.merchant.id,
    file: await fileOf(t, 'cards.csv', ['code,pin,balance,expiry,issuedAt,product', ...rows].join('\r\n')),
    rules: RULES,
    paidFrom: 'funding' as const,
  });
  const refused = await importVouchers(
    operator,
    await wantedOf([
      `${undated},1234,20.00,2025-06-30,,OLD`,
      `${other},1234,20.00,2025-06-30,2022-01-31,DEFAULT`,
    ]),
    RUN,
  );
  assert.deepEqual(
    refused.errors.map(({ line, message }) => [line, message]),
    [
      [2, 'has passed: unclaimed money needs issuedAt'],
      [3, 'has passed: leave out vouchers that have expired, unless their money is unclaimed'],
    ],
  );
  const file = await wantedOf([`${lapsed},1234,10.00,2025-06-30,2022-01-31,OLD`]);
  assert.equal((await importVouchers(operator, file, RUN)).state, 'imported');
  const spent = redeem({ ...issuer, now: service.clock() }, { code: lapsed, pin: '1234', amount: 1 });
  await assert.rejects(spent, { code: '54' });
  await ledger.at('2026-03-03T09:00:00Z');
  await ledger.close();
  const [row] = rowsOf(await make(service, 'R10', { from: '2026-03-02', to: '2026-03-03' }), 'unclaimed');
  assert.deepEqual(
    ['product', 'issuedOn', 'lastUsedOn', 'expiredOn', 'amount'].map((column) => row?.[column]),
    ['OLD', '2022-01-31', '2022-01-31', '2025-06-30', '10.00'],
  );
  const wanted = { expiredBefore: '2025-07-01', amount: 10, reference: 'state-1' };
  assert.equal((await escheat.run(operator as never, wanted as never)).amount, 10);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
  assert.deepEqual(await differing(service), []);
});

test('the money that came with an import is one movement at the bank', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  const { operator, started } = ledger;
  const file = await fileOf(t, 'cards.csv', csvOf(codesOf(5_010)));
  const taken = { merchantId, file, rules: RULES, reference: 'takeover-2026' } as const;
  assert.equal((await importVouchers(operator, { ...taken, paidFrom: 'funding' }, RUN)).state, 'imported');
  const bytes = Buffer.from('Buchungstag;Zweck;Betrag\n01.03.2026;takeover-2026;50100,00\n', 'latin1');
  await importBank(operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);
  const { items } = await bankMovements.run({ service: started.service } as never, { open: true });
  assert.deepEqual(
    items.map(({ kind, amount }) => [kind, amount]),
    [['IMPORT', 50_100]],
  );
  const before = await reconciled(ledger);
  assert.deepEqual(
    [before['booked, not at the bank'], before['at the bank, not booked'], before['unexplained']],
    ['-50100.00', '50100.00', '0.00'],
  );
  const { exact } = await matchBank(operator, false);
  assert.deepEqual(
    exact.map(({ movement }) => [movement.kind, movement.reference]),
    [['IMPORT', 'takeover-2026']],
  );
  const after = await reconciled(ledger);
  assert.deepEqual([after['booked, not at the bank'], after['unexplained']], ['0.00', '0.00']);
  await topUp(operator, { merchantId, currency: 'USD', amountMinor: 1_000n, reference: 'more' });
  const few = await fileOf(t, 'few.csv', csvOf(codesOf(1)));
  await importVouchers(operator, { ...taken, file: few, reference: 'few', paidFrom: 'float' }, RUN);
  assert.deepEqual(await differing(started.service), []);
  await ledger.sql('update scrip.import_movements set amount_minor = amount_minor + 1');
  assert.deepEqual(await namesOfDiffering(started.service), ['imports']);
});

test('an age that cannot be is refused', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const issuer = await ledger.merchant(0n);
  const [a, b, c, d, e] = codesOf(5);
  const rows = [
    'code,pin,balance,expiry,issuedAt,lastUsedAt',
    `${a},1234,10.00,2035-06-30,2026-03-03,`,
    `${b},1234,10.00,2035-06-30,1989-12-31,`,
    `${c},1234,10.00,2035-06-30,2023-02-01,2023-01-31`,
    `${d},1234,10.00,2035-06-30,,2023-01-31`,
    `${e},1234,10.00,2035-06-30,31.12.2022,`,
  ];
  const file = await fileOf(t, 'cards.csv', `${rows.join('\r\n')}\r\n`);
  const wanted = { merchantId: issuer.merchant.id, file, rules: RULES, paidFrom: 'funding' } as const;
  const { state, errors } = await importVouchers(ledger.operator, wanted, RUN);
  assert.equal(state, 'refused');
  assert.deepEqual(
    errors.map(({ line, field, message }) => [line, field, message]),
    [
      [2, 'issuedAt', 'is in the future'],
      [3, 'issuedAt', 'is before 1990'],
      [4, 'lastUsedAt', 'is before issuedAt'],
      [5, 'lastUsedAt', 'needs issuedAt'],
      [6, 'issuedAt', 'is not a day such as 2020-01-31, or a time such as 2020-01-31T12:00:00Z'],
    ],
  );
});
