import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { keepBooks } from '../../src/books/close.ts';
import { refundFloat } from '../../src/books/floats.ts';
import { streamTransactions } from '../../src/books/reports/transactions.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { adjustVoucher, cashOut, escheatVoucher } from '../../src/books/vouchers.ts';
import type { Context } from '../../src/context.ts';
import { isUnavailable } from '../../src/db/errors.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { examine } from '../../src/monitor/doctor.ts';
import { CHECK_BOOKING } from '../../src/monitor/readiness.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { cancelVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { because } from '../support/books.history.ts';
import { type Ledger, openLedger, type Sold, sell, spend } from '../support/books.ts';
import { DEPLOYMENT } from '../support/doctor.ts';
import { cents, exportedText, make, rowsOf } from '../support/reports.ts';
import { close, terms } from '../support/settlements.ts';

/** The clock of the machine and of its database is set back behind a closed day. */

const DAY = { from: '2026-03-02', to: '2026-03-03' };
const SET_BACK = '2026-03-02T23:50:00Z';

type Scene = { ledger: Ledger; issuer: Context; shop: Context; cards: readonly Sold[] };

async function closedDay(t: TestContext): Promise<Scene> {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const issuer = await ledger.merchant();
  const shop = await ledger.merchant(10_000n);
  await terms(ledger.operator, shop.merchant.id, { from: '2026-03-02' });
  const cards = await sell(issuer, 6, 25);
  await spend(shop, cards[0] as Sold, 10, 'sale 1');
  await ledger.at('2026-03-03T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-02']);
  return { ledger, issuer, shop, cards };
}

/** Everything of a closed day that is read row by row. */
async function documents({ ledger, shop }: Scene, day = DAY): Promise<Record<string, string>> {
  const { service } = ledger.started;
  const { from, to } = day;
  const merchantId = shop.merchant.id;
  const made: Record<string, string> = {
    R6: JSON.stringify(await make(service, 'R6', { from, to, merchantId })),
    R8: JSON.stringify(await Array.fromAsync(streamTransactions(service, { from, to, merchantId }))),
  };
  for (const format of ['csv', 'ndjson', 'camt053', 'beancount', 'hledger'] as const) {
    const rowByRow = format === 'beancount' || format === 'hledger';
    made[format] = await exportedText(service, { format, from, to, rowByRow });
  }
  return made;
}

/** Every way to write to the journal. */
const BOOKINGS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  redeem: ({ shop, cards }) => spend(shop, cards[1] as Sold, 10, 'sale 2'),
  update: ({ shop, ledger }) =>
    updateRedemption({ ...shop, now: ledger.started.clock.now() }, { reference: 'sale 1', amountUsed: 5 }),
  generate: ({ issuer }) => sell(issuer, 1, 25),
  'top up': ({ ledger, shop }) =>
    topUp(ledger.operator, { merchantId: shop.merchant.id, currency: 'USD', amountMinor: 700n }),
  refund: ({ ledger, shop }) =>
    refundFloat(ledger.operator, {
      merchantId: shop.merchant.id,
      currency: 'USD',
      amountMinor: 100n,
      reference: 'back',
    }),
  adjust: ({ ledger, cards }) =>
    adjustVoucher(because(ledger.operator), {
      serialNumber: (cards[2] as Sold).serial,
      deltaMinor: 100n,
      reference: 'up',
    }),
  'cash out': ({ ledger, cards }) =>
    cashOut(ledger.operator, {
      serialNumber: (cards[2] as Sold).serial,
      amountMinor: null,
      merchantId: null,
      reference: 'cash',
    }),
  escheat: ({ ledger, cards }) =>
    escheatVoucher(ledger.operator, { serialNumber: (cards[3] as Sold).serial, reference: 'state' }),
  replace: ({ ledger, cards }) => replaceVoucher(ledger.operator, (cards[4] as Sold).serial),
  cancel: ({ ledger, cards }) => cancelVoucher(ledger.operator, (cards[5] as Sold).serial),
};

test('nothing is booked while the clock is behind a closed day, so that the day stays as it is', async (t) => {
  const scene = await closedDay(t);
  const { ledger } = scene;
  const { service, clock } = ledger.started;
  const before = await documents(scene);
  const count = async () =>
    (await ledger.sql<{ rows: bigint }>('select count(*) as rows from scrip.journal'))[0];
  const rows = await count();
  await ledger.at(SET_BACK);
  for (const [name, book] of Object.entries(BOOKINGS)) await assert.rejects(book(scene), isUnavailable, name);
  await assert.rejects(service.db.hot(CHECK_BOOKING, [clock.now()]), isUnavailable);
  await assert.rejects(
    keepBooks(service, [], () => false),
    isUnavailable,
  );
  const clocks = (await examine(DEPLOYMENT, service.db)).find(({ check }) => check === 'clocks');
  assert.match(clocks?.found ?? '', /clock is 1650 s behind the books/);
  assert.deepEqual(await count(), rows);
  await ledger.at('2026-03-03T09:00:00Z');
  for (const book of Object.values(BOOKINGS)) await book(scene);
  await ledger.at('2026-03-04T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-03']);
  assert.deepEqual(await documents(scene), before);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
  const { checks } = await reconcile(service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

/** Booked by a program that ignores the horizon of the books, such as an older one. */
async function bookedLate(scene: Scene): Promise<void> {
  const { ledger } = scene;
  await ledger.sql("update scrip.book_horizon set at = '-infinity'");
  await ledger.at(SET_BACK);
  await spend(scene.shop, scene.cards[1] as Sold, 20, 'late sale');
  const merchantId = scene.shop.merchant.id;
  await topUp(ledger.operator, { merchantId, currency: 'USD', amountMinor: 700n, reference: 'late' });
  await cashOut(ledger.operator, {
    serialNumber: (scene.cards[3] as Sold).serial,
    amountMinor: 300n,
    merchantId,
    reference: 'late cash',
  });
  await sell(scene.shop, 1, 5);
}

test('rows in a sealed slice are booked on the day of the next close, in every report, statement and export', async (t) => {
  const scene = await closedDay(t);
  const { ledger, shop } = scene;
  const { service } = ledger.started;
  const merchantId = shop.merchant.id;
  const before = await documents(scene);
  await bookedLate(scene);
  await ledger.at('2026-03-03T09:00:00Z');
  await spend(shop, scene.cards[2] as Sold, 1, 'sale 2');
  await ledger.at('2026-03-04T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-03']);
  assert.deepEqual(await documents(scene), before);
  const next = { from: '2026-03-03', to: '2026-03-04', merchantId };
  const after = await documents(scene, next);
  // R6 is of floats, and has no redemptions.
  for (const [name, text] of Object.entries(after))
    assert.equal(text.split('late sale').length - 1, name === 'R6' ? 0 : 1, name);
  const floats = rowsOf(await make(service, 'R6', next));
  const trial = rowsOf(await make(service, 'R1', { from: next.from, to: next.to }));
  const issuerFloat = rowsOf(await make(service, 'R6', { ...next, merchantId: scene.issuer.merchant.id }));
  assert.equal(
    cents(floats.at(-1)?.['balance']) + cents(issuerFloat.at(-1)?.['balance']),
    cents(trial.find(({ account }) => account === 'FLOAT')?.['closing']),
  );
  // 2.5 % of 21.00 and 20 % VAT on it.
  const [settled] = rowsOf(await make(service, 'R7', next));
  assert.deepEqual([settled?.['commission'], settled?.['vat']], ['0.53', '0.11']);
  const { breaks } = await verifyBooks(service);
  assert.deepEqual(
    breaks.map(({ day, change, detail }) => [day, change, detail]),
    [
      ...Array(5).fill(['2026-03-02', 'late', 'booked on 2026-03-03']),
      ['2026-03-02', 'totals', 'batches are not those that were closed'],
    ],
  );
  const { checks } = await reconcile(service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

test('nothing is booked before a mark, although its slice is not sealed', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const [card] = await sell(await ledger.merchant(), 1, 25);
  const shop = await ledger.merchant();
  assert.ok(card);
  await ledger.at('2026-03-02T10:00:00Z');
  await ledger.close();
  const horizon = () => ledger.sql<{ at: Date }>('select at from scrip.book_horizon');
  const before = await horizon();
  await ledger.at('2026-03-02T09:57:29Z');
  await assert.rejects(spend(shop, card, 1), { code: 'SC002' });
  await ledger.sql('select * from scrip.advance_mark()');
  assert.deepEqual(await horizon(), before);
  await ledger.at('2026-03-02T09:57:30Z');
  await spend(shop, card, 1);
});

test('a day closes after its rows were copied to a server with younger transactions', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  await ledger.merchant();
  await ledger.close();
  await ledger.sql(`update scrip.book_marks set mark = '4000000000'`);
  await ledger.at('2026-03-03T00:20:00Z');
  assert.equal((await ledger.close()).closed.length, 1);
});

test('every function that writes to the journal checks its stamp', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const functions = await ledger.sql<{ name: string; checks: boolean }>(`
select proname as name, prosrc ~ '\\mperform check_stamp\\(p_now\\)' as checks from pg_proc
where pronamespace = 'scrip'::regnamespace and prosrc ~ 'insert into journal' order by 1`);
  assert.ok(functions.length > 5);
  assert.deepEqual(
    functions.filter(({ checks }) => !checks),
    [],
  );
});
