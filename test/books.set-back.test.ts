import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { keepBooks } from '../src/books/close.ts';
import { exportBooks } from '../src/books/export.ts';
import { refundFloat } from '../src/books/floats.ts';
import { streamTransactions } from '../src/books/reports/transactions.ts';
import { verifyBooks } from '../src/books/verify.ts';
import { adjustVoucher, cashOut, escheatVoucher } from '../src/books/vouchers.ts';
import type { Context, Operator } from '../src/context.ts';
import { isUnavailable } from '../src/db/errors.ts';
import { CHECK_BOOKING } from '../src/db/sql.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { topUp } from '../src/merchants/floats.ts';
import { examine } from '../src/monitor/doctor.ts';
import { updateRedemption } from '../src/redemptions/update.ts';
import { cancelVoucher, replaceVoucher } from '../src/vouchers/operate.ts';
import { type Ledger, openLedger, type Sold, sell, spend } from './books.ts';
import { SURROUNDINGS } from './doctor.ts';
import { make } from './reports.ts';
import { close, terms } from './settlements.ts';

/** The clock of the machine and of its database is set back behind a closed day. */

const DAY = { from: '2026-03-02', to: '2026-03-03' };
const SET_BACK = '2026-03-02T23:50:00Z';

type Scene = { ledger: Ledger; issuer: Context; shop: Context; cards: readonly Sold[] };

async function closedDay(t: TestContext): Promise<Scene> {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const issuer = await ledger.merchant();
  const shop = await ledger.merchant(10_000n);
  await terms(ledger.operator, shop.merchant.id, { validFrom: '2026-03-02' });
  const cards = await sell(issuer, 6, 25);
  await spend(shop, cards[0] as Sold, 10, 'sale 1');
  await ledger.at('2026-03-03T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-02']);
  return { ledger, issuer, shop, cards };
}

/** Everything of a closed day that is read row by row. */
async function documents({ ledger, shop }: Scene): Promise<Record<string, string>> {
  const { service } = ledger.started;
  const merchantId = shop.merchant.id;
  const made: Record<string, string> = {
    R6: JSON.stringify(await make(service, 'R6', { ...DAY, merchantId })),
    R8: JSON.stringify(await Array.fromAsync(streamTransactions(service, { ...DAY, merchantId }))),
  };
  for (const format of ['csv', 'ndjson', 'camt053', 'beancount', 'hledger'] as const) {
    let text = '';
    const rowByRow = format === 'beancount' || format === 'hledger';
    await exportBooks(service, { format, ...DAY, rowByRow }, async (piece) => {
      text += piece;
    });
    made[format] = text;
  }
  return made;
}

const because = (operator: Operator): Operator => ({
  ...operator,
  actor: { ...operator.actor, reason: 'as the customer showed' },
});

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
      decimals: 2,
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
  const clocks = (await examine(service, SURROUNDINGS)).find(({ check }) => check === 'clocks');
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
