import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { newId } from '../../src/ledger/id.ts';
import { Bench } from '../support/statement.ts';

/** Movements between two accounts: book of sql/015-booking.sql. */

const bench = Bench.ofTests();
let one: Context;
let other: Context;
let accounts: Record<'FUNDING' | 'FEES' | 'GOODWILL' | 'UNCLAIMED' | 'SETTLEMENT' | 'FLOAT', bigint>;

before(async () => {
  [one, other] = [await bench.merchant(), await bench.merchant()];
  accounts = {
    FUNDING: await bench.account('FUNDING'),
    FEES: await bench.account('FEES'),
    GOODWILL: await bench.account('GOODWILL'),
    UNCLAIMED: await bench.account('UNCLAIMED'),
    SETTLEMENT: await bench.account('SETTLEMENT', one),
    FLOAT: await bench.account('FLOAT', one),
  };
});

type Booking = {
  readonly kind: string;
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amount?: bigint;
  readonly merchant?: number | null;
  readonly original?: string;
  readonly id?: string;
};

function textOf(booking: Booking): string {
  const {
    kind,
    debit,
    credit,
    amount = 100n,
    merchant = one.merchant.id,
    original,
    id = bench.id(),
  } = booking;
  return `select book('${kind}', '${id}', ${debit}, ${credit}, ${amount}, ${merchant},
    ${original === undefined ? 'null' : `'${original}'`}, 'their reference', '${bench.id()}',
    '${bench.now.toISOString()}') as outcome`;
}

/** @returns `ok`, or the status code of the decline */
async function book(booking: Booking): Promise<string> {
  const statement = { text: textOf(booking), values: [] };
  const [row] = await bench.served.service.db.query<{ outcome: string }>(statement);
  return row?.outcome ?? '';
}

/** Writes a row of the journal. @returns its id */
async function written(kind: string, debit: bigint, credit: bigint, amount: bigint, by = one) {
  const id = bench.id();
  await bench.query(
    `insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency,
       merchant_id, occurred_at)
     values (0, '${id}', '${kind}', ${debit}, ${credit}, ${amount}, 'USD', ${by.merchant.id}, '${bench.now.toISOString()}')`,
  );
  return id;
}

const refund = (more: Partial<Booking> = {}) =>
  book({ kind: 'FLOAT_REFUND', debit: accounts.FLOAT, credit: accounts.FUNDING, ...more });
const correction = (original: string, more: Partial<Booking> = {}) =>
  refund({ kind: 'FLOAT_CORRECTION', original, ...more });
const payout = (more: Partial<Booking> = {}) =>
  book({ kind: 'PAYOUT', debit: accounts.SETTLEMENT, credit: accounts.FUNDING, ...more });
const payoutReturn = (original: string, more: Partial<Booking> = {}) =>
  book({
    ...{ kind: 'PAYOUT_RETURN', debit: accounts.FUNDING, credit: accounts.SETTLEMENT, original },
    ...more,
  });

test('a refund takes money that the float has, and writes one row', async () => {
  const [before, id] = [await bench.floatOf(one), bench.id()];
  assert.equal(await refund({ amount: before + 1n }), '50');
  assert.equal(await bench.floatOf(one), before);
  assert.equal(await refund({ id, amount: before }), 'ok');
  assert.equal(await bench.floatOf(one), 0n);
  const rows = await bench.query(
    `select kind::text, debit_account as debit, credit_account as credit, amount_minor as amount, currency,
       merchant_id as merchant, original_id as original, reference, occurred_at as at
     from journal where id = '${id}'`,
  );
  assert.deepEqual(rows, [
    {
      ...{ kind: 'FLOAT_REFUND', debit: accounts.FLOAT, credit: accounts.FUNDING, amount: before },
      ...{ currency: 'USD', merchant: one.merchant.id, original: null, reference: 'their reference' },
      at: bench.now,
    },
  ]);
  await bench.query(`update floats set balance_minor = ${before} where account_id = ${accounts.FLOAT}`);
});

test('a correction names a top-up of the float, once, and takes at most its amount', async () => {
  const { FUNDING, FLOAT } = accounts;
  const [topUp, second] = [
    await written('TOP_UP', FUNDING, FLOAT, 500n),
    await written('TOP_UP', FUNDING, FLOAT, 500n),
  ];
  assert.equal(await correction(bench.id()), '60');
  assert.equal(await correction(await written('PAYOUT_RETURN', FUNDING, FLOAT, 500n)), '60');
  assert.equal(await correction(await written('TOP_UP', accounts.GOODWILL, FLOAT, 500n)), '60');
  assert.equal(await correction(await written('TOP_UP', FUNDING, accounts.SETTLEMENT, 500n)), '60');
  assert.equal(await correction(topUp, { amount: 501n }), '13');
  const before = await bench.floatOf(one);
  assert.equal(await correction(topUp, { amount: 499n }), 'ok');
  assert.equal(await correction(topUp, { amount: 1n }), '58');
  assert.equal(await correction(second, { amount: 500n }), 'ok');
  assert.equal(await bench.floatOf(one), before - 999n);
});

test('a payout is booked whatever the settlement account has, and is returned once, in full', async () => {
  const id = bench.id();
  assert.equal(await payout({ id, amount: 70_000n }), 'ok');
  assert.equal(await payoutReturn(id, { amount: 69_999n }), '13');
  assert.equal(await payoutReturn(id, { amount: 70_001n }), '13');
  assert.equal(await payoutReturn(id, { amount: 70_000n }), 'ok');
  assert.equal(await payoutReturn(id, { amount: 70_000n }), '58');
});

test("money leaves the operator's accounts as far as they have it", async () => {
  const { FUNDING, FEES, GOODWILL, UNCLAIMED, SETTLEMENT } = accounts;
  await written('EXPIRY', GOODWILL, UNCLAIMED, 100n);
  await written('FEE', SETTLEMENT, FEES, 100n);
  const escheat = (amount: bigint) =>
    book({ kind: 'ESCHEAT', debit: UNCLAIMED, credit: FUNDING, amount, merchant: null });
  const transfer = (debit: bigint, credit: bigint, amount: bigint) =>
    book({ kind: 'OWN_TRANSFER', debit, credit, amount, merchant: null });
  assert.deepEqual([await escheat(101n), await escheat(100n), await escheat(1n)], ['51', 'ok', '51']);
  assert.deepEqual([await transfer(FEES, FUNDING, 101n), await transfer(FEES, FUNDING, 100n)], ['51', 'ok']);
  assert.equal(await transfer(FUNDING, GOODWILL, 10n ** 12n), 'ok');
});

test('a movement between the wrong accounts, currencies or merchants is an error', async () => {
  const { FUNDING, FLOAT, GOODWILL } = accounts;
  await assert.rejects(refund({ credit: GOODWILL }), /no FLOAT_REFUND goes from FLOAT USD to GOODWILL USD/);
  await assert.rejects(
    refund({ credit: await bench.account('FUNDING', undefined, 'EUR') }),
    /to FUNDING EUR/,
  );
  await assert.rejects(book({ kind: 'TOP_UP', debit: FUNDING, credit: FLOAT }), /no TOP_UP goes from/);
  await assert.rejects(refund({ merchant: other.merchant.id }), /is not one of merchant/);
  await assert.rejects(refund({ merchant: null }), /is not one of merchant/);
});

test('a row of the close is dated after the sealed slices, and its id begins with that time', async (t) => {
  t.after(() => bench.query('update books set sealed_until = null'));
  const { SETTLEMENT, FEES } = accounts;
  const later = newId(new Date(bench.now.getTime() + 60_000));
  const fee = (id = bench.id()) => book({ kind: 'FEE', debit: SETTLEMENT, credit: FEES, id, amount: 7n });
  const seal = (seconds: number) =>
    bench.query(
      `update books set sealed_until = '${bench.now.toISOString()}'::timestamptz + interval '${seconds} s'`,
    );
  assert.equal(await fee(later), 'ok');
  const [row] = await bench.query<{ id: string; start: string }>(
    `select id, left(id_floor(occurred_at)::text, 13) as start
     from journal where id::text like '%${later.slice(13)}'`,
  );
  assert.equal(row?.id, `${row?.start}${later.slice(13)}`);
  await seal(0);
  assert.equal(await fee(), 'ok');
  await seal(0.001);
  await assert.rejects(fee(), /is sealed/);
});

test('of two corrections of a top-up at the same time, one is booked', async () => {
  const { FUNDING, FLOAT } = accounts;
  const original = await written('TOP_UP', FUNDING, FLOAT, 500n);
  const first = textOf({ kind: 'FLOAT_CORRECTION', debit: FLOAT, credit: FUNDING, original });
  assert.equal(await bench.during([first], () => correction(original)), '58');
});
