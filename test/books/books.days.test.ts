import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listDays } from '../../src/books/days.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { openLedger, sell, spend } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close } from '../support/settlements.ts';

test('days close in order, including empty ones, and verify without a difference', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 3, 25);
  assert.ok(card);
  await ledger.at('2026-03-04T10:00:00Z');
  await spend(shop, card, 10, 'till 1');
  assert.deepEqual(await close(ledger), ['2026-03-02', '2026-03-03']);
  const { waiting } = await ledger.close();
  assert.match(waiting?.reason ?? '', /2026-03-04 ends at 2026-03-05T00:00:00.000Z/);
  const times = [waiting?.endsAt.toISOString(), waiting?.dueAt.toISOString()];
  const facts = [waiting?.cause, waiting?.day, ...times];
  const due = ['2026-03-05T00:00:00.000Z', '2026-03-05T00:15:00.000Z'];
  assert.deepEqual(facts, ['not-due', '2026-03-04', ...due]);
  await ledger.at('2026-03-05T00:14:00Z');
  assert.deepEqual((await ledger.close()).closed, []);
  await ledger.at('2026-03-05T00:30:00Z');
  assert.equal((await ledger.close()).closed.length, 1);
  const days = await listDays(service);
  assert.deepEqual(
    days.map(({ day, state, rows }) => [day, state, rows]),
    [
      ['2026-03-02', 'closed', 5],
      ['2026-03-03', 'closed', 0],
      ['2026-03-04', 'closed', 1],
      ['2026-03-05', 'open', null],
    ],
  );
  assert.deepEqual(await listDays(service, { newest: 2 }), days.slice(-2));
  assert.deepEqual(await listDays(service, { to: '2026-03-04', newest: 1 }), days.slice(1, 2));
  assert.deepEqual(await verifyBooks(service), { ok: true, days: 3, rows: 6, breaks: [] });
  const reconciled = await reconcile(service);
  assert.deepEqual(
    reconciled.checks.filter(({ ok }) => !ok),
    [],
  );
});

test('a closed day on which no voucher holds money has 0 of them, and an open day has no count', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  await ledger.at('2026-03-03T09:00:00Z');
  await ledger.close();
  await sell(shop, 3, 25);
  const days = rowsOf(await make(ledger.started.service, 'R3', { from: '2026-03-02', to: '2026-03-04' }));
  assert.deepEqual(
    days.map(({ day, vouchers, outstanding }) => [day, vouchers, outstanding]),
    [
      ['2026-03-02', '0', '0.00'],
      ['2026-03-03', '', '75.00'],
    ],
  );
});
