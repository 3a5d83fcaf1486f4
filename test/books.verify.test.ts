import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyBooks } from '../src/books/verify.ts';
import { openLedger, sell, spend } from './books.ts';

async function closedDay(t: Parameters<typeof openLedger>[0]) {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const [one, other] = await sell(shop, 2, 25);
  assert.ok(one && other);
  const spent = await spend(shop, one, 10, 'till 1');
  await spend(shop, other, 5, 'till 2');
  await ledger.at('2026-03-03T10:00:00Z');
  await ledger.close();
  const breaks = async () => (await verifyBooks(ledger.started.service)).breaks;
  assert.deepEqual(await breaks(), []);
  return { ledger, shop, one, spent, breaks };
}

test('an altered row is found', async (t) => {
  const { ledger, spent, breaks } = await closedDay(t);
  await ledger.sql(
    `update scrip.journal set amount_minor = amount_minor + 1 where id = '${spent.transactionId}'`,
  );
  const [found, ...others] = await breaks();
  assert.deepEqual([found?.change, found?.transactionId, others], ['altered', spent.transactionId, []]);
});

test('a removed row is found', async (t) => {
  const { ledger, spent, breaks } = await closedDay(t);
  await ledger.sql(`delete from scrip.journal where id = '${spent.transactionId}'`);
  const [found, ...others] = await breaks();
  assert.deepEqual([found?.change, found?.transactionId, others], ['removed', spent.transactionId, []]);
});

test('an added row is found, and recorded as late by the next close', async (t) => {
  const { ledger, spent, breaks } = await closedDay(t);
  const [row] = await ledger.sql<{ id: string }>(`
    insert into scrip.journal (id, debit_account, credit_account, amount_minor, occurred_at, serial_number,
      merchant_id, kind, currency)
    select scrip.id_at(gen_random_uuid(), occurred_at), debit_account, credit_account, 1, occurred_at,
      serial_number, merchant_id, kind, currency
    from scrip.journal where id = '${spent.transactionId}' returning id`);
  const [found, ...others] = await breaks();
  assert.deepEqual([found?.change, found?.transactionId, others], ['added', row?.id, []]);
  await ledger.at('2026-03-04T10:00:00Z');
  const { closed } = await ledger.close();
  // The day that takes the row over fails: a voucher has a cent more than its entries.
  assert.deepEqual(
    closed.map(({ failed }) => failed),
    [['liability is what the vouchers hold']],
  );
  const late = (await breaks()).filter(({ change }) => change === 'late');
  assert.deepEqual([late.map(({ transactionId }) => transactionId), late[0]?.day], [[row?.id], '2026-03-02']);
});

test('a rewritten or removed closing is found', async (t) => {
  const { ledger, breaks } = await closedDay(t);
  await ledger.at('2026-03-04T10:00:00Z');
  await ledger.close();
  await ledger.sql("update scrip.book_closings set rows = rows + 1 where day = '2026-03-02'");
  assert.deepEqual(
    (await breaks()).map(({ change }) => change),
    ['closing', 'seal'],
  );
  await ledger.sql("delete from scrip.book_closings where day = '2026-03-02'");
  assert.ok((await breaks()).some(({ day, change }) => day === '2026-03-02' && change === 'audit'));
  assert.ok((await breaks()).some(({ day, change }) => day === '2026-03-03' && change === 'chain'));
});

test('rewritten balances and movements are found', async (t) => {
  const { ledger, breaks } = await closedDay(t);
  await ledger.sql('update scrip.book_movements set amount_minor = amount_minor + 1');
  await ledger.sql("update scrip.book_balances set balance_minor = 7 where account_kind = 'VOUCHER'");
  const found = await breaks();
  assert.ok(found.length > 1 && found.every(({ change }) => change === 'totals'));
});
