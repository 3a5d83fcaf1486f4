import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../../src/context.ts';
import { actFor, merchants } from '../../src/merchants/merchants.ts';
import type { FieldError, Refusal } from '../../src/refusal.ts';
import { playDays } from '../support/books.history.ts';
import { spend } from '../support/books.ts';
import { exportedText, make, rowsOf } from '../support/reports.ts';

/** The days and merchants that a report accepts, and the stability of reports of closed days. */

const WHOLE = { from: '2026-03-02', to: '2026-03-06' };

type Fault = FieldError & { readonly facts: { readonly accounts?: readonly object[] } };

const names = (field: string, rule: string, wanted: object) => (error: Refusal) => {
  const [fault] = error.errors as readonly Fault[];
  assert.deepEqual([fault?.field, fault?.rule, fault?.facts], [field, rule, wanted]);
  return true;
};

function namesAccounts(error: Refusal): boolean {
  const [fault] = error.errors as readonly Fault[];
  const accounts = fault?.facts.accounts ?? [];
  assert.equal(fault?.rule, 'no-number');
  assert.ok(accounts.length > 3);
  for (const each of accounts) assert.deepEqual(Object.keys(each), ['kind', 'merchant', 'product']);
  return true;
}

async function refuseBreakdowns(service: Service, merchantId: number): Promise<void> {
  for (const [name, breakdown] of [
    ['R1', 'product'],
    ['R4', 'merchant'],
    ['R6', 'merchant'],
  ] as const)
    await assert.rejects(
      make(service, name, { ...WHOLE, breakdown, ...(name === 'R6' && { merchantId }) }),
      names('breakdown', 'no-breakdown', {}),
    );
}

test('the days and merchants of a report', async (t) => {
  const { ledger, shop } = await playDays(t);
  const { service } = ledger.started;

  await t.test('a report of all merchants cannot be limited to one', async () => {
    for (const name of ['R1', 'R2', 'R3', 'R4', 'R5', 'R9', 'R10', 'R11', 'R12', 'R13']) {
      const message = `${name} is of all merchants; R6, R7 and R8 are of one`;
      const errors = [{ field: 'merchantId', rule: 'all-merchants', message, facts: {} }];
      const refused = { code: '30', message: `Invalid request: ${message}`, errors };
      await assert.rejects(make(service, name, { ...WHOLE, merchantId: shop }), refused);
    }
  });

  await t.test('a refusal names the field', async () => {
    const books = { first: '2026-03-02', last: '2026-03-06' };
    const early = { from: '2026-02-01', to: '2026-03-01' };
    const late = { ...WHOLE, to: '2026-03-07' };
    await assert.rejects(make(service, 'R6', WHOLE), names('merchantId', 'required', {}));
    await assert.rejects(make(service, 'R1', early), names('from', 'not-in-books', books));
    await assert.rejects(make(service, 'R4', late), names('to', 'not-closed', { day: '2026-03-06' }));
    await assert.rejects(
      make(service, 'R2', { ...WHOLE, section: 'totals' }),
      names('section', 'no-section', {}),
    );
    await refuseBreakdowns(service, shop);
    await assert.rejects(make(service, 'R12', WHOLE), namesAccounts);
  });

  await t.test('an interval from before the first day of the service begins with that day', async () => {
    const early = { ...WHOLE, from: '2026-02-01' };
    assert.deepEqual(await make(service, 'R1', early), await make(service, 'R1', WHOLE));
    assert.equal(
      await exportedText(service, { format: 'csv', ...early }),
      await exportedText(service, { format: 'csv', ...WHOLE }),
    );
  });

  await t.test('renaming a merchant does not change the reports of closed days', async () => {
    const all = async () => [
      ...(await Promise.all(['R2', 'R7', 'R9'].map((name) => make(service, name, WHOLE)))),
      await exportedText(service, { format: 'beancount', ...WHOLE }),
      await exportedText(service, { format: 'camt053', ...WHOLE }),
    ];
    const before = await all();
    const renamed = { id: String(shop), name: 'Under new management' };
    await merchants.set.run(ledger.operator, renamed);
    assert.deepEqual(await all(), before);
    const [today] = rowsOf(await make(service, 'R2', { from: '2026-03-06', to: '2026-03-07' }));
    assert.equal(today?.['issuer'], 'Under new management');
  });

  await t.test('a report that needs closed days is refused for an open day', async () => {
    const open = { from: '2026-03-02', to: '2026-03-07' };
    const closing = new Map(
      rowsOf(await make(service, 'R1', open)).map((row) => [row['account'], row['closing']]),
    );
    const evening = rowsOf(await make(service, 'R3', open)).at(-1);
    assert.deepEqual(
      [evening?.['day'], evening?.['outstanding'], evening?.['floats'], `-${evening?.['minusFunding']}`],
      ['2026-03-06', ...['VOUCHER', 'FLOAT', 'FUNDING'].map((kind) => closing.get(kind))],
    );
    for (const name of ['R4', 'R11', 'R12'])
      await assert.rejects(make(service, name, open), /2026-03-06 is not closed/);
    const sections = async (interval: typeof open) =>
      new Set((await make(service, 'R5', interval)).tables.map(({ section }) => section));
    assert.deepEqual(await sections(open), new Set(['booked']));
    assert.deepEqual(await sections(WHOLE), new Set(['booked', 'cohorts']));
  });
});

test('the sections of a report', async (t) => {
  const { ledger, cafe, cards } = await playDays(t);
  const { service } = ledger.started;

  await t.test('one alone is what the whole report has, on closed and on open days', async () => {
    for (const wanted of [WHOLE, { ...WHOLE, to: '2026-03-07' }])
      for (const name of ['R2', 'R5']) {
        const { tables } = await make(service, name, wanted);
        for (const section of new Set(tables.flatMap((table) => table.section ?? []))) {
          const alone = await make(service, name, { ...wanted, section });
          assert.deepEqual(
            alone.tables,
            tables.filter((table) => table.section === section),
          );
        }
      }
  });

  await t.test('one of closed days is refused for an open day', async () => {
    await assert.rejects(
      make(service, 'R2', { ...WHOLE, to: '2026-03-07', section: 'months' }),
      names('to', 'not-closed', { day: '2026-03-06' }),
    );
  });

  await t.test('the total of an open day is the sum of its products and issuers', async () => {
    const context = await actFor(service, cafe);
    assert.ok(context);
    await spend(context, cards[0], 1, 'open');
    const { tables } = await make(service, 'R2', { from: '2026-03-06', to: '2026-03-07' });
    const [whole, total] = [tables.find(({ section }) => !section), tables.find(({ section }) => section)];
    const [sums] = total?.rows ?? [];
    assert.equal(sums?.['redeemed'], '1.00');
    for (const column of total?.amounts ?? [])
      assert.equal(
        whole?.rows.reduce((sum, row) => sum + Math.round(100 * Number(row[column])), 0),
        Math.round(100 * Number(sums?.[column])),
        column,
      );
  });
});
