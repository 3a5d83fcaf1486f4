import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sweepExpired } from '../../src/books/sweep.ts';
import type { Context } from '../../src/context.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { listFloats } from '../../src/merchants/merchants.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { blockVoucher, cancelVoucher, extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { type Ledger, openLedger, proveSound, type Sold, sell } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close } from '../support/settlements.ts';

/** Vouchers that are paid for when they are generated, and expire before anybody activates them. */

const FAR = new Date('2026-06-30T23:59:59.999Z');
const productCode = 'LATER';

/** A shop with a float of 10,000.00, and vouchers of 10.00 that can be activated until the end of 4 March. */
async function openShop(ledger: Ledger, quantity: number): Promise<{ shop: Context; cards: Sold[] }> {
  const terms = { ...productDefaults('USD', 2), activation: 'on-activation', validityDays: 2 } as const;
  await createProduct(ledger.operator, { ...terms, code: productCode, name: productCode });
  // An older batch, with another value.
  await sell(await ledger.merchant(500n), 1, 5);
  const shop = await ledger.merchant(1_000_000n);
  return { shop, cards: await sell(shop, quantity, 10, { productCode }) };
}

const floatOf = async ({ service, merchant }: Context) =>
  Number((await listFloats(service.db, merchant.id))[0]?.balance);

const open = (context: Context, { code, pin }: Sold) =>
  activate({ ...context, now: context.service.clock() }, { voucher: { code, pin } });

const releasesOf = ({ sql }: Ledger) =>
  sql<{ amount: number; serial: bigint | null; at: Date; reserve: number }>(
    `select amount_minor::int as amount, serial_number as serial, occurred_at as at,
       (debit_account - 5000000000)::int as reserve
     from scrip.journal where kind = 'RELEASE' order by id`,
  );

async function reserves({ started, sql }: Ledger): Promise<number> {
  const [row] = await sql<{ minor: number }>(
    `select coalesce(sum(balance_minor), 0)::int as minor
     from scrip.balances_at('${started.service.clock().toISOString()}'::timestamptz + interval '1 ms')
     where account_kind = 'RESERVE'`,
  );
  return row?.minor ?? -1;
}

for (const buckets of [1, 3]) {
  const where = buckets === 1 ? '' : ', over buckets';

  test(`when a batch expires, one row gives back the price of all that was never activated${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator, started } = ledger;
    const { shop, cards } = await openShop(ledger, 9);
    const [sold, blocked, replaced, canceled, kept] = cards as [Sold, Sold, Sold, Sold, Sold];
    await open(await ledger.merchant(0n), sold);
    await blockVoucher(operator, blocked.serial);
    await replaceVoucher(operator, replaced.serial);
    assert.equal(await floatOf(shop), 991_000);
    await cancelVoucher(operator, canceled.serial);
    assert.deepEqual([await floatOf(shop), await reserves(ledger)], [992_000, 7_000]);
    await extendVoucher(operator, kept.serial, new Date('2026-03-06T23:59:59.999Z'));
    await proveSound(ledger.started.service);

    await ledger.at('2026-03-05T00:20:00Z');
    await close(ledger);
    // The extended one keeps its price. The row is dated at the expiry, as the money that expired is.
    assert.deepEqual([await floatOf(shop), await reserves(ledger)], [998_000, 1_000]);
    const [, release] = await releasesOf(ledger);
    assert.deepEqual(
      [release?.amount, release?.serial, release?.at.toISOString()],
      [6_000, null, '2026-03-04T23:59:59.999Z'],
    );
    const days = { from: '2026-03-02', to: '2026-03-05' };
    const lines = rowsOf(await make(started.service, 'R6', { ...days, merchantId: shop.merchant.id }));
    assert.deepEqual(
      lines.map(({ kind, amount, balance }) => [kind, amount, balance]),
      [
        ['opening', '', '0.00'],
        ['TOP_UP', '10000.00', '10000.00'],
        ['RESERVATION', '-90.00', '9910.00'],
        ['RELEASE', '10.00', '9920.00'],
        ['RELEASE', '60.00', '9980.00'],
        ['closing', '', '9980.00'],
      ],
    );
    const evening = rowsOf(await make(started.service, 'R3', days)).at(-1);
    assert.deepEqual([evening?.['reserves'], evening?.['floats']], ['10.00', '9980.00']);
    assert.equal(await sweepExpired(started.service), 0);
    await proveSound(ledger.started.service);

    // It can still be activated, and its price goes back by itself if nobody does.
    await ledger.at('2026-03-07T00:20:00Z');
    await ledger.close();
    assert.deepEqual([await floatOf(shop), await reserves(ledger)], [999_000, 0]);
    const last = (await releasesOf(ledger)).at(-1);
    assert.deepEqual(
      [last?.amount, last?.serial, last?.at.toISOString()],
      [1_000, kept.serial, '2026-03-06T23:59:59.999Z'],
    );
    await proveSound(ledger.started.service);
  });

  test(`a voucher that lapsed is activated only after its float has paid again${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator, started } = ledger;
    const { shop, cards } = await openShop(ledger, 3);
    const [card, poor, other] = cards as [Sold, Sold, Sold];
    await sell(shop, 1, 10, { productCode });
    await ledger.at('2026-03-04T23:59:59.999Z');
    await assert.rejects(cancelVoucher(operator, other.serial), { code: '54' });
    await ledger.at('2026-03-05T00:20:00Z');
    await ledger.close();
    assert.equal(await floatOf(shop), 1_000_000);
    assert.equal((await showVoucher(started.service, card.serial)).payerId, null);
    await assert.rejects(open(shop, card), { code: '54' });
    await assert.rejects(cancelVoucher(operator, other.serial), { code: '54' });

    await extendVoucher(operator, card.serial, FAR);
    assert.deepEqual([await floatOf(shop), await reserves(ledger)], [999_000, 1_000]);
    // Once is enough: it is paid for.
    await extendVoucher(operator, card.serial, new Date('2026-07-31T23:59:59.999Z'));
    assert.equal(await floatOf(shop), 999_000);
    const told = await ledger.sql<{ amount: string | null }>(
      `select after::json ->> 'amount' as amount from scrip.audit where action = 'voucher.extend'
       order by sequence`,
    );
    assert.deepEqual(told, [{ amount: 'USD 10.00' }, { amount: null }]);
    await open(shop, card);
    assert.equal((await showVoucher(started.service, card.serial)).balance, 1_000n);

    await sell(shop, 1, 9_985);
    await assert.rejects(extendVoucher(operator, poor.serial, FAR), { code: '50' });
    assert.equal(
      (await showVoucher(started.service, poor.serial)).expiresAt.toISOString(),
      '2026-03-04T23:59:59.999Z',
    );
  });
}

test('a card without a value of its own is canceled without moving money', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant(10_000n);
  const [card] = (await sell(shop, 1, undefined)) as [Sold];
  await cancelVoucher(ledger.operator, card.serial);
  assert.equal((await showVoucher(ledger.started.service, card.serial)).state, 'CANCELED');
  assert.equal(await floatOf(shop), 10_000);
  await assert.rejects(open(shop, card), { code: '44' });
  await proveSound(ledger.started.service);
});

test('a till whose clock is behind cannot activate a voucher whose price went back', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { started } = ledger;
  const { shop, cards } = await openShop(ledger, 2);
  const [card, held] = cards as [Sold, Sold];
  await ledger.at('2026-03-05T00:00:30Z');
  // A till that has begun to activate a voucher holds it: the sweep leaves it, and finds it again.
  const till = openDatabase(started.url, 'till');
  t.after(() => till.close());
  await till.transaction(async (tx) => {
    await tx.query({ text: `select * from lock_voucher(0, ${held.serial})`, values: [] });
    await sweepExpired(started.service);
  });
  assert.equal(await floatOf(shop), 999_000);
  started.clock.set(new Date('2026-03-04T23:59:30Z'));
  await assert.rejects(open(shop, card), { code: '54' });
  await open(shop, held);
  started.clock.set(new Date('2026-03-05T00:00:30Z'));
  assert.equal(await sweepExpired(started.service), 1);
  assert.deepEqual([await floatOf(shop), await reserves(ledger)], [999_000, 0]);
  await proveSound(ledger.started.service);
});
