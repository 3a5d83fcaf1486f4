import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageOfFloats } from '../../src/books/floats.ts';
import { openLedger, sell } from '../support/books.ts';

test('the forecast of a float divides its balance by the mean use of the last 28 days', async (t) => {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant(100_000n);
  const { id } = shop.merchant;
  const floats = () => pageOfFloats(service, { merchantId: id, isLow: false }, [], 9);
  assert.deepEqual(
    (await floats()).map(({ daysLeft }) => daysLeft),
    [null],
  );
  await sell(shop, 4, 25);
  await ledger.at('2026-03-02T00:30:00Z');
  await ledger.close();
  // The merchant is one day old: the mean is the use of that day, and says nothing about the days to come.
  assert.deepEqual(
    (await floats()).map(({ balance, usePerDay, daysLeft }) => [balance, usePerDay, daysLeft]),
    [[90_000n, 10_000n, null]],
  );
  await ledger.at('2026-03-11T08:00:00Z');
  await sell(shop, 4, 25);
  await ledger.at('2026-03-12T00:30:00Z');
  await ledger.close();
  assert.deepEqual(
    (await floats()).map(({ balance, usePerDay, daysLeft }) => [balance, usePerDay, daysLeft]),
    [[80_000n, 1_818n, 44]],
  );
  // Use from more than 28 days ago does not count.
  await ledger.at('2026-03-30T09:00:00Z');
  assert.deepEqual(
    (await floats()).map(({ daysLeft }) => daysLeft),
    [224],
  );
});
