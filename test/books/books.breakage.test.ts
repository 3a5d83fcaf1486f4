import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setBreakageRate } from '../../src/books/rules.ts';
import { adjustVoucher, cashOut } from '../../src/books/vouchers.ts';
import { products } from '../../src/products/products.ts';
import { cancelVoucher, extendVoucher } from '../../src/vouchers/operate.ts';
import { type Ledger, openLedger, product, type Sold, sell, spend } from '../support/books.ts';
import { make, type Row, rowsOf } from '../support/reports.ts';
import { close } from '../support/settlements.ts';

/** R5: what is estimated never to be redeemed, beside what has expired. */

async function estimate({ operator }: Ledger, code: string, percent: number, from: string) {
  await setBreakageRate(operator, { product: code, percent, from, reason: 'three years of cohorts' });
}

const tableOf = async ({ started }: Ledger, section: string, from: string, to: string): Promise<Row[]> =>
  rowsOf(await make(started.service, 'R5', { from, to }), section);

const pick = (row: Row | undefined, ...columns: string[]) => columns.map((column) => row?.[column]);

/** To a morning, with all days before it closed. */
async function to(ledger: Ledger, day: string): Promise<void> {
  await ledger.at(`${day}T09:00:00Z`);
  await close(ledger);
}

test('a cohort is issued without its canceled vouchers, and its row adds up', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator } = ledger;
  const because = { ...operator, actor: { ...operator.actor, reason: 'a gift' } };
  const shop = await ledger.merchant();
  const productCode = await product(operator, 'SHORT', 'operator');
  await estimate(ledger, productCode, 50, '2026-03-02');
  const [spent, canceled, cashed, lost] = (await sell(shop, 4, 100, { productCode })) as [
    Sold,
    Sold,
    Sold,
    Sold,
  ];
  await spend(shop, spent, 80);
  await spend(shop, canceled, 25);
  await cancelVoucher(operator, canceled.serial);
  const cash = { serialNumber: cashed.serial, amountMinor: 9_000n, merchantId: null, reference: 'cash' };
  await cashOut(operator, cash);
  await adjustVoucher(because, { serialNumber: lost.serial, deltaMinor: 500n, reference: 'up' });
  await to(ledger, '2026-03-03');
  // 400.00 less the 75.00 that were canceled. What is left is 20.00, 10.00 and 105.00.
  const columns = ['issued', 'voided', 'redeemed', 'expired', 'other', 'outstanding', 'redeemedPercent'];
  const [cohort] = await tableOf(ledger, 'cohorts', '2026-03-02', '2026-03-03');
  assert.deepEqual(pick(cohort, ...columns), [
    ...['325.00', '75.00', '105.00', '0.00', '-85.00', '135.00', '32.31'],
  ]);
  // Half of 325.00 would be 162.50, but no more than 135.00 can still expire.
  const figures = ['issued', 'redeemed', 'expired', 'outstanding', 'estimated', 'recognized', 'deferred'];
  const [open] = await tableOf(ledger, 'estimate', '2026-03-02', '2026-03-03');
  assert.deepEqual(pick(open, ...figures), [
    ...['325.00', '105.00', '0.00', '135.00', '135.00', '74.61', '60.39'],
  ]);
  await to(ledger, '2026-03-06');
  const [run] = await tableOf(ledger, 'estimate', '2026-03-03', '2026-03-06');
  assert.deepEqual(pick(run, ...figures, 'before', 'inInterval', 'toBook'), [
    ...['325.00', '105.00', '135.00', '0.00', '135.00', '135.00', '0.00'],
    ...['74.61', '60.39', '0.00'],
  ]);
});

test('what has expired is recognized, however little was estimated, and nothing is deferred then', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const productCode = await product(ledger.operator, 'SHORT', 'operator');
  await estimate(ledger, productCode, 10, '2026-03-02');
  const [card] = (await sell(shop, 1, 100, { productCode })) as [Sold];
  await spend(shop, card, 80);
  await to(ledger, '2026-03-06');
  const [row] = await tableOf(ledger, 'estimate', '2026-03-02', '2026-03-06');
  assert.deepEqual(pick(row, 'expired', 'estimated', 'recognized', 'deferred', 'toBook', 'isExceeded'), [
    ...['20.00', '20.00', '20.00', '0.00', '0.00', 'no'],
  ]);
});

test('a cohort that nobody used expires as a whole, and what is extended later is added up', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const productCode = await product(ledger.operator, 'SHORT', 'operator');
  await estimate(ledger, productCode, 100, '2026-03-02');
  const cards: Sold[] = [];
  for (const shop of [await ledger.merchant(), await ledger.merchant()])
    cards.push(...(await sell(shop, 1, 100, { productCode })));
  await to(ledger, '2026-03-06');
  const [row] = await tableOf(ledger, 'estimate', '2026-03-02', '2026-03-06');
  assert.deepEqual(pick(row, 'issued', 'expired', 'estimated', 'recognized', 'deferred'), [
    ...['200.00', '200.00', '200.00', '200.00', '0.00'],
  ]);
  for (const [at, { serial }] of cards.entries()) {
    await extendVoucher(ledger.operator, serial, new Date('2026-04-30T23:59:59.999Z'));
    await to(ledger, `2026-03-0${7 + at}`);
  }
  const [booked] = await tableOf(ledger, 'booked', '2026-03-02', '2026-03-08');
  assert.deepEqual(pick(booked, 'expired', 'reinstated', 'net'), ['200.00', '200.00', '0.00']);
});

test('a voucher is estimated by the policy that its batch was ordered with', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator } = ledger;
  const shop = await ledger.merchant();
  const policy = (code: string, expiryPolicy: 'operator' | 'unclaimed') =>
    products.set.run(operator, { code, expiryPolicy });
  for (const [code, first, second] of [
    ['STATE', 'unclaimed', 'operator'],
    ['OWN', 'operator', 'unclaimed'],
  ] as const) {
    await product(operator, code, first);
    await estimate(ledger, code, 20, '2026-03-02');
    const [card] = (await sell(shop, 1, 100, { productCode: code })) as [Sold];
    await spend(shop, card, 40);
    await policy(code, second);
  }
  await to(ledger, '2026-03-03');
  const of = async () =>
    (await tableOf(ledger, 'estimate', '2026-03-02', '2026-03-03')).map((row) =>
      pick(row, 'product', 'policy', 'ratePercent', 'recognized', 'deferred'),
    );
  const expected = [
    ['STATE', 'unclaimed', '0.00', '0.00', '0.00'],
    ['OWN', 'operator', '20.00', '10.00', '10.00'],
  ];
  assert.deepEqual(await of(), expected);
  // What is sold from now on has the new policy, in a row of its own; closed days do not change.
  for (const code of ['STATE', 'OWN']) await sell(shop, 1, 50, { productCode: code });
  await to(ledger, '2026-03-04');
  assert.deepEqual(await of(), expected);
  const rows = await tableOf(ledger, 'estimate', '2026-03-03', '2026-03-04');
  assert.deepEqual(
    rows.map((row) => pick(row, 'product', 'policy', 'issued')),
    [
      ['STATE', 'operator', '50.00'],
      ['STATE', 'unclaimed', '100.00'],
      ['OWN', 'operator', '100.00'],
      ['OWN', 'unclaimed', '50.00'],
    ],
  );
});

test('a rate counts from its day on, and not for days that are closed', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const [card] = (await sell(shop, 1, 100)) as [Sold];
  await spend(shop, card, 45);
  await estimate(ledger, 'DEFAULT', 10, '2026-03-02');
  await to(ledger, '2026-03-03');
  const first = await tableOf(ledger, 'estimate', '2026-03-02', '2026-03-03');
  assert.deepEqual(pick(first[0], 'ratePercent', 'recognized', 'before'), ['10.00', '5.00', '0.00']);
  await assert.rejects(estimate(ledger, 'DEFAULT', 40, '2026-03-02'), {
    code: '17',
    message: /2026-03-02 is closed/,
  });
  await estimate(ledger, 'DEFAULT', 30, '2026-03-03');
  // A rate of an open day can be corrected.
  await estimate(ledger, 'DEFAULT', 40, '2026-03-03');
  await to(ledger, '2026-03-04');
  assert.deepEqual(await tableOf(ledger, 'estimate', '2026-03-02', '2026-03-03'), first);
  const [second] = await tableOf(ledger, 'estimate', '2026-03-03', '2026-03-04');
  assert.deepEqual(pick(second, 'ratePercent', 'recognized', 'before', 'inInterval'), [
    ...['40.00', '30.00', '5.00', '25.00'],
  ]);
});
