import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refundAtTill } from '../../src/books/refunds.ts';
import { createGauges } from '../../src/monitor/gauges.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { limitedNetwork } from '../../src/settings/limited-network.ts';
import { atNow, openLedger, sell, spend } from '../support/books.ts';

/** The amount at which a limited network must notify its authority, and the payments of twelve months. */

const QUARTER_MS = 900_000;

test('payments of the last twelve months count, less what was corrected or refunded', async (t) => {
  const ledger = await openLedger(t, '2025-03-02T09:00:00Z');
  const { operator } = ledger;
  const shop = await ledger.merchant(10_000_000n);
  const cards = await sell(shop, 3, 500);
  const [first, second, third] = cards;
  const gauges = createGauges(operator.service, undefined);
  const near = async () => /^scrip_network_near\{currency="USD"\} (\d)$/m.exec(await gauges())?.[1];
  const state = async () => (await limitedNetwork.list.run(operator, {})).items;
  const set = (amount: number | null) => limitedNetwork.set.run(operator, { currency: 'USD', amount });
  const expect = async (paid: number, percent: number, word: string) => {
    // A payment that is booked at this instant is not counted yet.
    await ledger.at(new Date(operator.service.clock().getTime() + 1_000));
    const now = operator.service.clock();
    // Sums are kept by quarters of an hour.
    const since = new Date(Math.floor(now.getTime() / QUARTER_MS) * QUARTER_MS);
    since.setUTCFullYear(since.getUTCFullYear() - 1);
    const row = { currency: 'USD', amount: 1_000, paid, since, percent, state: word };
    assert.deepEqual(await state(), [row]);
    assert.equal(await near(), word === 'below' ? '0' : '1');
  };
  assert.deepEqual([await state(), await near()], [[], undefined]);
  await set(1_000);

  await spend(atNow(shop), first, 300, 'first');
  await spend(atNow(shop), second, 500, 'second');
  // Neither a closed day nor a sealed slice has them yet.
  await expect(800, 80, 'near');
  await updateRedemption(atNow(shop), { reference: 'first', amountUsed: 299.99 });
  await expect(799.99, 79, 'below');
  await ledger.at('2025-03-03T09:00:00Z');
  await ledger.close();
  await expect(799.99, 79, 'below');

  await ledger.at('2026-03-02T08:00:00Z');
  await spend(atNow(shop), third, 200.01, 'third');
  await expect(1_000, 100, 'near');
  await spend(atNow(shop), third, 1, 'fourth');
  await expect(1_001, 100, 'passed');
  await refundAtTill(operator, atNow(shop), { reference: 'third', amount: 1, refundReference: 'back' });
  await expect(1_000, 100, 'near');
  // The first day is more than twelve months ago.
  await ledger.at('2026-03-02T10:00:00Z');
  await expect(200.01, 20, 'below');

  await set(null);
  assert.deepEqual([await state(), await near()], [[], undefined]);
});
