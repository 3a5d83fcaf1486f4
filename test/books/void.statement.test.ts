import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { Bench, BUCKET, type Card } from '../support/statement.ts';

/** Vouchers of a canceled batch are taken back: void_vouchers of sql/012-vouchers.sql. */

const bench = Bench.ofTests();
let one: Context;

before(async () => {
  one = await bench.merchant();
});

async function batchOf(card: Card): Promise<number> {
  return Number(await bench.ofCard(card, 'batch_id'));
}

const cancel = (batch: number) => bench.query(`update batches set status = 'CANCELED' where id = ${batch}`);

/** @returns the last serial number of the page */
async function voided(batch: number, after: bigint, count: number): Promise<bigint | null> {
  const ids = Array.from({ length: count }, () => bench.id());
  const text = `select void_vouchers(${BUCKET}, ${batch}, ${after}, '{${ids}}',
    '${bench.now.toISOString()}') as last`;
  const [row] = await bench.served.service.db.query<{ last: bigint | null }>({ text, values: [] });
  return row?.last ?? null;
}

test('a canceled batch is taken back page by page, with a row for each voucher that has a balance', async () => {
  const cards = (await bench.cards(one, 5, { value: 25 })) as [Card, Card, Card, Card, Card];
  const [first, empty, third, fourth, fifth] = cards;
  const neighbor = await bench.card(one, 25);
  const batch = await batchOf(first);
  await bench.setCard(empty, 'balance_minor = 0');
  await bench.setCard(third, 'balance_minor = 1');
  await cancel(batch);
  const lasts: (bigint | null)[] = [];
  for (let after: bigint | null = 0n; after !== null; lasts.push(after))
    after = await voided(batch, after, 2);
  assert.deepEqual(lasts, [empty.serial, fourth.serial, fifth.serial, null]);
  const state = "balance_minor || ' ' || coalesce(closed::text, 'open')";
  assert.deepEqual(await bench.ofCards([...cards, neighbor], state), [
    ...cards.map(() => '0 CANCELED'),
    '2500 open',
  ]);
  const rows = await bench.query(
    `select debit_account as serial, credit_account = reserve_of(${batch}) as to_reserve, amount_minor as amount,
       currency, merchant_id as merchant, serial_number = debit_account as same, batch_id as batch,
       occurred_at as at
     from journal where kind = 'VOID' order by debit_account`,
  );
  const row = {
    to_reserve: true,
    currency: 'USD',
    merchant: one.merchant.id,
    same: true,
    batch,
    at: bench.now,
  };
  assert.deepEqual(rows, [
    { serial: first.serial, amount: 2500n, ...row },
    { serial: third.serial, amount: 1n, ...row },
    { serial: fourth.serial, amount: 2500n, ...row },
    { serial: fifth.serial, amount: 2500n, ...row },
  ]);
});

test('a page begins after a serial number, and leaves out what was closed otherwise', async () => {
  const [first, replaced, last] = (await bench.cards(one, 3, { value: 25 })) as [Card, Card, Card];
  const batch = await batchOf(first);
  await bench.setCard(replaced, "balance_minor = 0, closed = 'REPLACED'");
  await cancel(batch);
  assert.equal(await voided(batch, first.serial, 3), last.serial);
  assert.deepEqual(await bench.ofCards([first, replaced, last], 'closed'), [null, 'REPLACED', 'CANCELED']);
});

test('vouchers of a batch that is not canceled stay', async () => {
  const card = await bench.card(one, 25);
  await assert.rejects(voided(await batchOf(card), 0n, 1), /returned no rows/);
  assert.equal(await bench.ofCard(card, 'balance_minor'), '2500');
});
