import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setDormancyRule, setVatTreatment } from '../../src/books/rules.ts';
import { cashOut } from '../../src/books/vouchers.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { blockVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { type Ledger, openLedger, product, sell, spend } from '../support/books.ts';
import { make } from '../support/reports.ts';
import { close } from '../support/settlements.ts';

/** The reports that depend on the law: dormancy (R10) and VAT (R11). */

async function rowsOf({ started }: Ledger, name: string, from: string, to: string) {
  const { tables } = await make(started.service, name, { from, to });
  return tables.flatMap(({ rows }) => rows);
}

const RULE = { from: '2026-01-01', basis: 'last-use', months: 2 } as const;

test('a changed rule of dormancy leaves the reports of closed days as they were', async (t) => {
  const ledger = await openLedger(t, '2026-01-01T12:00:00Z');
  const shop = await ledger.merchant();
  await sell(shop, 1, 20);
  const rule = { ...RULE, name: 'state' };
  await setDormancyRule(ledger.operator, rule);
  await ledger.at('2026-03-03T12:00:00Z');
  await close(ledger);
  const closed = ['R10', '2026-03-02', '2026-03-03'] as const;
  const before = await rowsOf(ledger, ...closed);
  assert.equal(before.length, 1);
  const change = { ...rule, months: 60 };
  await assert.rejects(setDormancyRule(ledger.operator, { ...change, from: '2026-03-02' }), { code: '17' });
  await setDormancyRule(ledger.operator, { ...change, from: '2026-03-03' });
  assert.deepEqual(await rowsOf(ledger, ...closed), before);
  await ledger.at('2026-03-04T12:00:00Z');
  assert.deepEqual(await rowsOf(ledger, 'R10', '2026-03-03', '2026-03-04'), []);
});

test('a voucher is dormant some months after its issue or last redemption', async (t) => {
  const ledger = await openLedger(t, '2026-01-10T12:00:00Z');
  const shop = await ledger.merchant();
  const [used, idle] = await sell(shop, 2, 20);
  assert.ok(used && idle);
  await setDormancyRule(ledger.operator, { ...RULE, name: 'by issue', basis: 'issue' });
  await setDormancyRule(ledger.operator, { ...RULE, name: 'by use' });
  await ledger.at('2026-02-20T12:00:00Z');
  await spend(shop, used, 5);
  await ledger.at('2026-03-12T12:00:00Z');
  const day = '2026-03-12';
  const found = await rowsOf(ledger, 'R10', day, '2026-03-13');
  const expected = (rule: string, { serial }: { serial: bigint }, lastUsedOn: string, balance: string) => {
    return {
      rule,
      serialNumber: String(serial),
      product: 'DEFAULT',
      issuedOn: '2026-01-10',
      lastUsedOn,
      dueOn: '2026-03-10',
      balance,
    };
  };
  assert.deepEqual(found, [
    expected('by issue', used, '2026-02-20', '15.00'),
    expected('by issue', idle, '2026-01-10', '20.00'),
    expected('by use', idle, '2026-01-10', '20.00'),
  ]);
  await ledger.at('2026-03-14T12:00:00Z');
  await spend(shop, idle, 20);
  assert.deepEqual(await rowsOf(ledger, 'dormancy', day, '2026-03-13'), found);
  await blockVoucher(ledger.operator, used.serial);
  const replacement = await replaceVoucher(ledger.operator, used.serial);
  assert.deepEqual(await rowsOf(ledger, 'dormancy', day, '2026-03-13'), found, 'before the replacement');
  await ledger.at('2026-03-16T12:00:00Z');
  const later = await rowsOf(ledger, 'dormancy', '2026-03-15', '2026-03-16');
  assert.deepEqual(
    later.map(({ rule, serialNumber, balance }) => [rule, serialNumber, balance]),
    [['by issue', String(replacement), '15.00']],
  );
});

test('the last use of a voucher is its last redemption under any of its numbers, and no correction', async (t) => {
  const ledger = await openLedger(t, '2026-01-01T12:00:00Z');
  const shop = await ledger.merchant();
  const [kept, lost] = await sell(shop, 2, 20);
  assert.ok(kept && lost);
  await setDormancyRule(ledger.operator, { ...RULE, name: 'by use', months: 1 });
  await ledger.at('2026-01-10T12:00:00Z');
  await spend(shop, lost, 5, 'till 1');
  await ledger.at('2026-01-20T12:00:00Z');
  await spend(shop, lost, 1, 'till 2');
  await spend(shop, kept, 4, 'till 3');
  await ledger.at('2026-01-25T12:00:00Z');
  const replacement = await replaceVoucher(ledger.operator, lost.serial);
  const last = await replaceVoucher(ledger.operator, replacement);
  await ledger.at('2026-01-28T12:00:00Z');
  const now = ledger.started.service.clock();
  for (const reference of ['till 1', 'till 3'])
    await updateRedemption({ ...shop, now }, { reference, amountUsed: 3 });
  await ledger.at('2026-02-02T12:00:00Z');
  await close(ledger);
  const idle = (await rowsOf(ledger, 'R4', '2026-02-01', '2026-02-02')).filter(
    ({ basis, vouchers }) => basis === 'idle' && vouchers !== '0',
  );
  assert.deepEqual(
    idle.map(({ days, vouchers, outstanding }) => [days, vouchers, outstanding]),
    [['0-30', '2', '33.00']],
  );
  await ledger.at('2026-02-21T12:00:00Z');
  assert.deepEqual(await rowsOf(ledger, 'R10', '2026-02-19', '2026-02-20'), []);
  const due = await rowsOf(ledger, 'R10', '2026-02-20', '2026-02-21');
  assert.deepEqual(
    due.map(({ serialNumber, issuedOn, lastUsedOn, dueOn, balance }) => {
      return [serialNumber, issuedOn, lastUsedOn, dueOn, balance];
    }),
    [
      [String(kept.serial), '2026-01-01', '2026-01-20', '2026-02-20', '17.00'],
      [String(last), '2026-01-01', '2026-01-20', '2026-02-20', '16.00'],
    ],
  );
});

test('months of dormancy are counted in the time zone of the books, and a short month counts as one', async (t) => {
  const ledger = await openLedger(t, '2026-01-31T23:30:00Z');
  await ledger.sql("update scrip.books set zone = 'Europe/Rome'");
  const shop = await ledger.merchant();
  const [january] = await sell(shop, 1, 20);
  await ledger.at('2026-02-28T22:30:00Z');
  const [february] = await sell(shop, 1, 20);
  assert.ok(january && february);
  await setDormancyRule(ledger.operator, { ...RULE, name: 'month', basis: 'issue', months: 1 });
  await ledger.at('2026-03-31T12:00:00Z');
  const found = await rowsOf(ledger, 'R10', '2026-03-30', '2026-03-31');
  assert.deepEqual(
    found.map(({ serialNumber, issuedOn, dueOn }) => [serialNumber, issuedOn, dueOn]),
    [
      [String(january.serial), '2026-02-01', '2026-03-01'],
      [String(february.serial), '2026-02-28', '2026-03-28'],
    ],
  );
});

test('VAT is part of the issued or of the redeemed amount, by the treatment of the day', async (t) => {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const { operator } = ledger;
  const shop = await ledger.merchant();
  for (const code of ['SINGLE', 'MULTI']) await product(operator, code, 'operator');
  const german = { from: '2026-03-01', country: 'DE' };
  const single = { ...german, product: 'SINGLE', treatment: 'single', rate: 19 } as const;
  await setVatTreatment(operator, single);
  await assert.rejects(setVatTreatment(operator, single), { code: '94' });
  await setVatTreatment(operator, { ...german, product: 'MULTI', treatment: 'multi', rate: 7 });
  const [returned] = await sell(shop, 2, 50, { productCode: 'SINGLE' });
  assert.ok(returned);
  const [card] = await sell(shop, 1, 50, { productCode: 'MULTI' });
  assert.ok(card);
  await spend(shop, card, 10.7);
  const cash = { merchantId: null, amountMinor: 1_000n, reference: 'paid back' };
  await cashOut(operator, { ...cash, serialNumber: returned.serial });
  await sell(shop, 1, 5);
  await ledger.at('2026-03-02T01:00:00Z');
  await close(ledger);
  const rows = await rowsOf(ledger, 'R11', '2026-03-01', '2026-03-02');
  assert.deepEqual(
    rows.map(({ product: code, treatment, ratePercent, issued, redeemed, taxed, base, tax }) => {
      return [code, treatment, ratePercent, issued, redeemed, taxed, base, tax];
    }),
    [
      ['DEFAULT', null, null, '5.00', '0.00', '0.00', '0.00', '0.00'],
      ['MULTI', 'multi', 7, '50.00', '10.70', '10.70', '10.00', '0.70'],
      ['SINGLE', 'single', 19, '90.00', '0.00', '90.00', '75.63', '14.37'],
    ],
  );
});

test('the treatment of vouchers is fixed when they are issued, their rate on days that are open', async (t) => {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const { operator } = ledger;
  const shop = await ledger.merchant();
  await product(operator, 'GIFT', 'operator');
  const treatment = {
    product: 'GIFT',
    from: '2026-03-01',
    treatment: 'single',
    country: 'FR',
    rate: 19,
  } as const;
  const set = (more: Partial<Parameters<typeof setVatTreatment>[1]>) =>
    setVatTreatment(operator, { ...treatment, ...more });
  await set({});
  await set({ from: '2026-03-02', country: 'DE' });
  await sell(shop, 1, 100, { productCode: 'GIFT' });
  for (const more of [{ treatment: 'multi' }, { country: 'AT' }] as const)
    await assert.rejects(set({ from: '2026-04-01', country: 'DE', ...more }), {
      code: '94',
      message: /were sold as single, DE/,
    });
  await ledger.at('2026-03-03T01:00:00Z');
  await close(ledger);
  await assert.rejects(set({ from: '2026-03-02', country: 'DE', rate: 7 }), { code: '17' });
  await set({ from: '2026-03-03', country: 'DE', rate: 7 });
});
