import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { generate } from '../../src/batches/generate.ts';
import { keepBooks } from '../../src/books/close.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import type { Context } from '../../src/context.ts';
import { isUnavailable } from '../../src/db/errors.ts';
import { plainArray } from '../../src/db/sql.ts';
import { claimReference } from '../../src/ledger/claims.ts';
import { holdFloat } from '../../src/ledger/holds.ts';
import { idAt, newId } from '../../src/ledger/id.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { REDEEM, redeem } from '../../src/redemptions/redeem.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { type Ledger, openLedger, type Sold, sell, soldBy } from '../support/books.ts';
import { differing, namesOfDiffering } from '../support/differing.ts';

/**
 * Over shards, a reference is claimed before its request is booked. A claim whose request was declined keeps
 * its id for hours. The books find a row by the time in its id.
 */

/** A ledger over several buckets, on one server as well. */
const openShards = (t: TestContext, start: string) => openLedger(t, start, { buckets: 2 });

/** Moves through the time in steps of half an hour, and keeps the books at each step. */
async function keepUntil(ledger: Ledger, until: string): Promise<void> {
  const { service, clock } = ledger.started;
  for (let at = clock.now().getTime(); at < new Date(until).getTime(); ) {
    at = Math.min(at + 1_800_000, new Date(until).getTime());
    await ledger.at(new Date(at));
    await keepBooks(service, [], () => false);
  }
}

/** Redeems 10.00, with the current time. */
function redeemTen(shop: Context, { code }: Sold, pin: string, reference: string) {
  return redeem({ ...shop, now: shop.service.clock() }, { code, pin, amount: 10, reference });
}

/** Closes the days up to a time, and expects that they agree with every row of the journal. */
async function expectSound(ledger: Ledger, at: string, days: Record<string, number>): Promise<void> {
  const { service } = ledger.started;
  await ledger.at(at);
  const closed = await ledger.sql<{ day: string; failed: string }>(
    `select day::text as day, totals from scrip.book_closings order by day`,
  );
  const { closed: more } = await ledger.close();
  assert.deepEqual(
    more.filter(({ failed }) => failed.length > 0),
    [],
  );
  assert.equal(closed.length + more.length, Object.keys(days).length);
  const rows = await ledger.sql<{ day: string; rows: bigint }>(
    `select day::text as day, sum(rows)::bigint as rows from scrip.book_movements
      where kind in ('REDEMPTION', 'ACTIVATION') and merchant_id > 0 group by 1 order by 1`,
  );
  assert.deepEqual(Object.fromEntries(rows.map(({ day, rows: count }) => [day, Number(count)])), days);
  const verified = await verifyBooks(service);
  assert.deepEqual([verified.ok, verified.breaks], [true, []]);
  for (const sinceClosing of [true, false]) assert.deepEqual(await differing(service, { sinceClosing }), []);
}

const wrong = (pin: string) => (pin === '0000' ? '0001' : '0000');

test('a redemption that is repeated hours after a decline is in the day of its booking', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const cards = await sell(shop, 4, 25);
  for (const [index, card] of cards.entries())
    await assert.rejects(redeemTen(shop, card, wrong(card.pin), `order ${index}`), { code: '55' });
  const times = ['2026-03-02T11:00', '2026-03-02T12:30', '2026-03-02T14:00', '2026-03-03T01:00'];
  for (const [index, card] of cards.entries()) {
    await keepUntil(ledger, `${times[index]}:00Z`);
    const outcome = await redeemTen(shop, card, card.pin, `order ${index}`);
    assert.ok(!outcome.replayed);
    const again = await redeemTen(shop, card, card.pin, `order ${index}`);
    assert.ok(again.replayed);
    assert.equal(again.transaction.transactionId, outcome.transaction.transactionId);
  }
  await keepUntil(ledger, '2026-03-04T00:10:00Z');
  await expectSound(ledger, '2026-03-04T00:30:00Z', { '2026-03-02': 7, '2026-03-03': 1 });
});

test('a redemption under way while the clock of its process is corrected is booked', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const cards = await sell(shop, 2, 25);
  for (const [index, { code, pin }] of cards.entries()) {
    const before = new Date(index === 0 ? '2026-03-02T08:15:00Z' : '2026-03-02T09:45:00Z');
    const request = { code, pin, amount: 10, reference: `order ${index}` };
    const { replayed } = await redeem({ ...shop, now: before }, request);
    assert.equal(replayed, false);
  }
  await expectSound(ledger, '2026-03-03T00:30:00Z', { '2026-03-02': 4 });
});

test('an activation that is repeated hours after a decline is in the day of its booking', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const terms = { ...productDefaults('USD', 2), code: 'LATER', name: 'Later' };
  await createProduct(ledger.operator, { ...terms, activation: 'on-activation' });
  const paid = await sell(shop, 1, 25, { productCode: 'LATER' });
  const poor = await ledger.merchant(2_000n);
  const order = { quantity: 1, productCode: 'LATER', reference: 'blank' };
  await generate({ ...poor, now: poor.service.clock() }, order);
  const unpaid = await soldBy(poor, 'blank');
  const give = (context: Context, { code }: Sold, pin: string, reference: string) =>
    activate({ ...context, now: context.service.clock() }, { voucher: { code, pin }, value: 25, reference });
  const [card, blank] = [paid[0] as Sold, unpaid[0] as Sold];
  await assert.rejects(give(shop, card, wrong(card.pin), 'a'), { code: '55' });
  await assert.rejects(give(poor, blank, blank.pin, 'b'), { code: '50' });
  await keepUntil(ledger, '2026-03-02T12:00:00Z');
  await topUp({ ...ledger.operator }, { merchantId: poor.merchant.id, currency: 'USD', amountMinor: 1_000n });
  for (const [context, each, reference] of [
    [shop, card, 'a'],
    [poor, blank, 'b'],
  ] as const) {
    const outcome = await give(context, each, each.pin, reference);
    assert.ok(!outcome.replayed);
    const again = await give(context, each, each.pin, reference);
    assert.ok(again.replayed);
  }
  await keepUntil(ledger, '2026-03-03T00:10:00Z');
  await expectSound(ledger, '2026-03-03T00:30:00Z', { '2026-03-02': 2 });
});

test('a claim of a process whose clock was ahead does not date its booking', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  const { clock } = ledger.started;
  clock.set(new Date('2026-03-02T15:00:00Z'));
  await assert.rejects(redeemTen(shop, card, card.pin, 'ahead'), { code: 'SC001' });
  clock.set(new Date('2026-03-02T09:00:00Z'));
  const outcome = await redeemTen(shop, card, card.pin, 'ahead');
  assert.ok(!outcome.replayed);
  await keepUntil(ledger, '2026-03-03T00:10:00Z');
  await expectSound(ledger, '2026-03-03T00:30:00Z', { '2026-03-02': 2 });
});

test('a request that was delayed for hours is not booked under the id that it claimed', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  await assert.rejects(redeemTen(shop, card, wrong(card.pin), 'late'), { code: '55' });
  const claims = () =>
    ledger.sql<{ id: string }>(
      `select id from scrip.claims where reference = 'late' and operation = 'redeem'`,
    );
  const [declined] = await claims();
  await keepUntil(ledger, '2026-03-02T12:00:00Z');
  const bucket = service.buckets.ofSerial(card.serial);
  const [keys] = service.keys.lookUps(card);
  const book = async () => {
    const of = [shop.merchant.id, shop.keyId, keys?.codeKey ?? '', keys?.pinKey ?? '', 100_000];
    const columns = [...of.map((each) => plainArray([each])), '{late}', plainArray([declined?.id ?? ''])];
    const values = [bucket, ...columns, true, null, service.clock()];
    return (await service.db.hot<{ outcome: string }>(REDEEM, values, bucket)).map(({ outcome }) => outcome);
  };
  assert.deepEqual(await book(), ['void']);
  const outcome = await redeemTen(shop, card, card.pin, 'late');
  assert.ok(!outcome.replayed);
  assert.deepEqual(await book(), ['void']);
  assert.deepEqual(await claims(), [{ id: outcome.transaction.transactionId }]);
});

test('an activation with another value than its batch gets 13, also under a used reference', async (t) => {
  for (const buckets of [1, 2]) {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const shop = await ledger.merchant();
    const [open] = await sell(shop, 1, undefined);
    const [paid] = await sell(shop, 1, 25);
    const activateAs = ({ serial }: Sold, value: number) =>
      activate(shop, { voucher: { serialNumber: Number(serial) }, value, reference: 'x' });
    await activateAs(open, 50);
    await assert.rejects(activateAs(paid, 0.01), { code: '13' });
    await assert.rejects(activateAs(open, 0.001), { code: '13' });
    await assert.rejects(activateAs(paid, 25), { code: '94' });
  }
});

test('the journal takes no row whose id is far from its time', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const [card] = await sell(await ledger.merchant(), 1, 25);
  const [row] = await ledger.sql<{ occurred_at: Date }>(
    `select occurred_at from scrip.journal where serial_number = ${card.serial} order by id limit 1`,
  );
  // A time instead of an interval: Citus computes nothing from the columns of a row that it changes.
  const move = (minutes: number) => {
    const time = new Date((row?.occurred_at.getTime() ?? 0) + minutes * 60_000);
    return ledger.sql(
      `update scrip.journal set occurred_at = '${time.toISOString()}' where serial_number = ${card.serial}`,
    );
  };
  // A clock that was set is no bug: the till is answered with 91, and tries again.
  for (const minutes of [-61, 61])
    await assert.rejects(move(minutes), (error: Error) => {
      assert.match(error.message, /journal_id_near_time/);
      return isUnavailable(error);
    });
  await move(57);
});

test('claims and holds that a crash has left are booked hours later in the day of the repeat', async (t) => {
  const ledger = await openShards(t, '2026-03-02T22:30:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  await generate({ ...shop, now: service.clock() }, { quantity: 1, reference: 'blank' });
  const [blank] = (await soldBy(shop, 'blank')) as [Sold];
  const merchantId = shop.merchant.id;
  const claim = async ({ serial }: Sold, operation: 'redeem' | 'activate', fingerprint: string) => {
    const id = newId(service.clock());
    const request = { merchantId, operation, reference: 'cut', serialNumber: serial, fingerprint, id };
    assert.equal(await claimReference(service, request, new Set()), id);
    return id;
  };
  await claim(card, 'redeem', '100000');
  const id = await claim(blank, 'activate', '250000');
  const hold = { id, merchantId, currency: 'USD', amountMinor: 2_500n };
  const bucket = service.buckets.ofSerial(blank.serial);
  assert.ok(await holdFloat(service, { ...hold, bucket, serialNumber: blank.serial }));
  // The process dies here. The repeats come after midnight.
  await keepUntil(ledger, '2026-03-03T01:00:00Z');
  await redeemTen(shop, card, card.pin, 'cut');
  const wanted = { voucher: { code: blank.code, pin: blank.pin }, value: 25, reference: 'cut' };
  for (const isReplay of [false, true]) {
    const outcome = await activate({ ...shop, now: service.clock() }, wanted);
    assert.ok(outcome.replayed === isReplay);
  }
  const open = await ledger.sql(`select from scrip.float_holds where ended_at is null`);
  assert.equal(open.length, 0);
  await keepUntil(ledger, '2026-03-04T00:10:00Z');
  await expectSound(ledger, '2026-03-04T00:30:00Z', { '2026-03-02': 1, '2026-03-03': 2 });
});

test('a row that is in no slice is found by reconcile, whatever brought it there', async (t) => {
  const ledger = await openShards(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  await redeemTen(shop, card, card.pin, 'moved');
  await keepUntil(ledger, '2026-03-02T12:00:00Z');
  const [row] = await ledger.sql<{ id: string }>(`select id from scrip.journal where reference = 'moved'`);
  const early = idAt(row?.id ?? '', new Date('2026-03-02T06:00:00Z'));
  await ledger.sql('alter table scrip.journal drop constraint journal_id_near_time');
  await ledger.sql(`update scrip.journal set id = '${early}' where reference = 'moved'`);
  assert.ok((await namesOfDiffering(ledger.started.service)).includes('slices'));
});
