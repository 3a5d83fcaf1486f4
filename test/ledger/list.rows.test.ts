import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { openOwner, type Queries } from '../../src/db/pool.ts';
import { listTransactions } from '../../src/ledger/transactions.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { Bench } from '../support/statement.ts';

/** The list of a merchant reads a bounded number of rows, however long its history is. */

const BATCHES = 5_000;
/**
 * Enough for fifty transactions of the merchant and fifty batches of one voucher, each with its voucher,
 * batch and journal row.
 */
const ROWS_MAX = 1_000;

// Before the end of the bench, which drops the database.
after(() => reader?.close());
const bench = Bench.ofTests();
let one: Context;
let reader: Queries & { close(): Promise<void> };

before(async () => {
  one = await bench.merchant();
  reader = await openOwner(bench.served.url);
  await reader.query({ text: 'set search_path = scrip', values: [] });
  await reader.query({ text: 'set enable_bitmapscan = off', values: [] });
});

/** The time of the bench, as an expression. */
const at = () => `'${bench.now.toISOString()}'::timestamptz`;

/**
 * Inserts batches of one voucher each that ended in a year, either with a value and activated, or without.
 */
async function addBatches(count: number, value: number | null, year: number): Promise<void> {
  const known = `
    select id as merchant_id, default_product_id as product_id from merchants where id = ${one.merchant.id}`;
  await bench.query(`
    with made as (
      insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced,
        value_minor, expires_at, currency, decimals, activation, scope, status, accepted_at, progressed_at,
        ended_at, newest_activation)
      select gen_random_uuid(), merchant_id, 'old ' || gen_random_uuid(), product_id, 1, 1, ${value},
        '2040-01-01', 'USD', 2, 'immediate', 'network', 'COMPLETED', '2029-01-01', '2029-01-01',
        t.ended_at, case when ${value}::int is not null then id_at(gen_random_uuid(), t.ended_at) end
      from (${known}) m, generate_series(1, ${count}) n
      cross join lateral (select '${year}-01-01'::timestamptz + n * interval '1 s' as ended_at) t
      returning id
    ), vouchers_made as (
      insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, expires_at, value_minor,
        balance_minor, activated_at, payer_id)
      select nextval('voucher_numbers') * 64, id, gen_random_uuid(), gen_random_uuid(), '', '2040-01-01',
        ${value}, ${value ?? 0}, ${value === null ? 'null' : "'2029-01-01'"}::timestamptz, ${one.merchant.id}
      from made returning serial_number, batch_id
    )
    insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      serial_number, batch_id, occurred_at)
    select id_at(gen_random_uuid(), ${at()}), 'ACTIVATION', reserve_of(batch_id), serial_number, ${value},
      'USD', ${one.merchant.id}, serial_number, batch_id, ${at()}
    from vouchers_made where ${value !== null}`);
}

/** The number of rows that the list reads from tables, by index or by a scan. */
async function rowsRead(inForceOnly: boolean): Promise<number> {
  const run = <Row>(text: string) => reader.query<Row>({ text, values: [] });
  const count = 'select sum(seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables';
  await run('begin');
  const context = {
    ...one,
    service: { ...one.service, readDb: { ...one.service.readDb, query: reader.query } },
  };
  const listed = await listTransactions(context, { inForceOnly });
  assert.equal(listed.length, 50);
  const [row] = await run<{ rows: number }>(count);
  await run('commit');
  return row?.rows ?? assert.fail();
}

/** Inserts vouchers of another merchant in one batch, each with its activation. */
async function addNeighbors(count: number): Promise<void> {
  const neighbor = await bench.merchant();
  const { serial } = await bench.card(neighbor);
  await bench.query(`
    with made as (
      insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, expires_at)
      select nextval('voucher_numbers') * 64, batch_id, gen_random_uuid(), gen_random_uuid(), '', '2040-01-01'
      from vouchers, generate_series(1, ${count}) where serial_number = ${serial}
      returning serial_number
    )
    insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      serial_number, occurred_at)
    select id_at(gen_random_uuid(), ${at()}), 'ACTIVATION', 1, serial_number, 1, 'USD',
      ${neighbor.merchant.id}, serial_number, ${at()} from made`);
}

describe('the list of a merchant', () => {
  test('reads few rows beside thousands of batches of one voucher', async () => {
    // The batches without a value are newer than all that the list shows.
    await addBatches(BATCHES, null, 2031);
    await addBatches(BATCHES, 100, 2029);
    await addNeighbors(20 * BATCHES);
    for (let nth = 0; nth < 60; nth++) await bench.card(one, 1);
    await bench.query('analyze');
    for (const inForceOnly of [true, false]) {
      const rows = await rowsRead(inForceOnly);
      assert.ok(rows < ROWS_MAX, `${rows} rows`);
    }
  });

  test('reads few rows of thousands of redemptions, a third of which were updated', async () => {
    const card = await bench.card(await bench.merchant(), 1_000);
    await redeem(one, { ...card, amount: 1, reference: 'the pattern of all others' });
    await bench.query(`
      with sales as (
        insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
          serial_number, occurred_at)
        select id_at(gen_random_uuid(), occurred_at), kind, debit_account, credit_account, amount_minor,
          currency, merchant_id, serial_number, occurred_at
        from journal, generate_series(1, ${4 * BATCHES}) where reference = 'the pattern of all others'
        returning *
      ), updates as (
        insert into redemption_updates (original_id, reversal_id, new_minor, updated_at)
        select id, id_at(gen_random_uuid(), occurred_at), 0, occurred_at from sales
        where right(id::text, 1) < '5'
        returning *
      )
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, original_id, occurred_at)
      select u.reversal_id, 'REDEMPTION_REVERSAL', s.credit_account, s.debit_account, s.amount_minor,
        s.currency, s.merchant_id, s.serial_number, s.id, s.occurred_at
      from updates u join sales s on s.id = u.original_id`);
    await bench.query('analyze');
    for (const inForceOnly of [true, false]) {
      const rows = await rowsRead(inForceOnly);
      assert.ok(rows < ROWS_MAX, `${rows} rows`);
    }
  });
});
