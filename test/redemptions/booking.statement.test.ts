import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { Bench, BUCKET, type Card, UNKNOWN } from '../support/statement.ts';

/** Movements between a voucher and an account: book_voucher of sql/015-booking.sql. */

/** The first amount that no balance reaches, in minor units. */
const LIMIT = 10n ** 15n;

const bench = Bench.ofTests();
let one: Context;
let other: Context;
/** Accounts in dollars: the operator's, and those of `one`. */
let accounts: Record<'FUNDING' | 'GOODWILL' | 'BREAKAGE' | 'SETTLEMENT' | 'FLOAT', bigint>;

before(async () => {
  [one, other] = [await bench.merchant(), await bench.merchant()];
  accounts = {
    FUNDING: await bench.account('FUNDING'),
    GOODWILL: await bench.account('GOODWILL'),
    BREAKAGE: await bench.account('BREAKAGE'),
    SETTLEMENT: await bench.account('SETTLEMENT', one),
    FLOAT: await bench.account('FLOAT', one),
  };
});

type Booking = {
  readonly kind: string;
  readonly card: Card;
  readonly with: bigint;
  readonly to?: boolean;
  readonly amount?: bigint;
  readonly original?: string;
  readonly id?: string;
};

/** @returns `ok`, or the status code of the decline */
async function book(booking: Booking): Promise<string> {
  const { kind, card, with: by, to = false, amount = 100n, original, id = bench.id() } = booking;
  const text = `select book_voucher('${kind}', '${id}', ${BUCKET}, ${card.serial}, ${by}, ${to}, ${amount},
    ${original === undefined ? 'null' : `'${original}'`}, 'their reference', '${bench.id()}',
    '${bench.now.toISOString()}') as outcome`;
  const [row] = await bench.served.service.db.query<{ outcome: string }>({ text, values: [] });
  return row?.outcome ?? '';
}

const adjustment = (card: Card, more: Partial<Booking> = {}) =>
  book({ kind: 'ADJUSTMENT', card, with: accounts.GOODWILL, ...more });
const cashOut = (card: Card, more: Partial<Booking> = {}) =>
  book({ kind: 'CASH_OUT', card, with: accounts.SETTLEMENT, ...more });
const cancellation = (card: Card, more: Partial<Booking> = {}) =>
  book({ kind: 'CANCELLATION', card, with: accounts.FLOAT, amount: 2500n, ...more });
const escheat = (card: Card, more: Partial<Booking> = {}) =>
  book({ kind: 'ESCHEAT', card, with: accounts.FUNDING, ...more });
const reinstatement = (card: Card, original: string, more: Partial<Booking> = {}) =>
  book({ kind: 'REINSTATEMENT', card, with: accounts.BREAKAGE, to: true, original, ...more });

const setFloat = (by: Context, minor: bigint) =>
  bench.query(`update floats set balance_minor = ${minor} where merchant_id = ${by.merchant.id}`);

const rowOf = (id: string) =>
  bench.query(
    `select kind::text, debit_account as debit, credit_account as credit, amount_minor as amount, currency,
       merchant_id as merchant, serial_number as serial, original_id as original, reference, occurred_at as at
     from journal where id = '${id}'`,
  );

/** Expires an amount of a voucher. @returns the id of the row */
async function expired(card: Card, to: bigint, amount = 100n, kind = 'EXPIRY'): Promise<string> {
  const id = bench.id();
  await bench.query(
    `insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency,
       serial_number, occurred_at)
     values (${BUCKET}, '${id}', '${kind}', ${card.serial}, ${to}, ${amount}, 'USD', ${card.serial}, 
       '${bench.now.toISOString()}')`,
  );
  return id;
}

test('a movement changes the balance of the voucher, and writes one row', async () => {
  const card = await bench.card(one, 25);
  const common = {
    ...{ currency: 'USD', serial: card.serial, original: null, reference: 'their reference', at: bench.now },
  };
  const [up, down, out] = [bench.id(), bench.id(), bench.id()];
  const { GOODWILL, SETTLEMENT } = accounts;
  assert.equal(await adjustment(card, { id: up, to: true, amount: 300n }), 'ok');
  assert.equal(await bench.ofCard(card, 'balance_minor'), '2800');
  const adjusted = { kind: 'ADJUSTMENT', merchant: null, ...common };
  assert.deepEqual(await rowOf(up), [{ ...adjusted, debit: GOODWILL, credit: card.serial, amount: 300n }]);
  assert.equal(await adjustment(card, { id: down, amount: 100n }), 'ok');
  assert.deepEqual(await rowOf(down), [{ ...adjusted, debit: card.serial, credit: GOODWILL, amount: 100n }]);
  assert.equal(await cashOut(card, { id: out, amount: 2700n }), 'ok');
  assert.equal(await bench.ofCard(card, "balance_minor || ' ' || coalesce(closed::text, 'open')"), '0 open');
  const cashed = { kind: 'CASH_OUT', merchant: one.merchant.id, ...common };
  assert.deepEqual(await rowOf(out), [{ ...cashed, debit: card.serial, credit: SETTLEMENT, amount: 2700n }]);
});

test('a cancellation takes the entire balance, which goes to the float that paid', async () => {
  const [card, second, third] = await bench.cards(one, 3, { value: 25 });
  const before = await bench.floatOf(one);
  assert.equal(await cancellation(card, { amount: 2499n }), '13');
  assert.equal(await cancellation(card), 'ok');
  assert.equal(await bench.floatOf(one), before + 2500n);
  assert.equal(await bench.ofCard(card, "balance_minor || ' ' || closed"), '0 CANCELED');
  await assert.rejects(
    cancellation(second, { with: await bench.account('FLOAT', other) }),
    /merchant \d+ did not pay for voucher/,
  );
  await setFloat(one, LIMIT - 2500n);
  assert.equal(await cancellation(second), '13');
  await setFloat(one, LIMIT - 2501n);
  assert.deepEqual([await cancellation(second), await bench.floatOf(one)], ['ok', LIMIT - 1n]);
  await setFloat(one, before);
  assert.equal(await bench.ofCard(third, 'balance_minor'), '2500');
});

test('a voucher is declined by its state, the most lasting one first', async () => {
  const [card, second] = await bench.cards(one, 2, { value: 25 });
  const outcomes = async () => [
    await adjustment(card, { amount: 0n }),
    await cashOut(card, { amount: 0n }),
    await cancellation(card, { amount: 0n }),
    await escheat(card, { amount: 0n }),
  ];
  assert.deepEqual(await outcomes(), ['42', '42', '42', '42']);
  await bench.setCard(card, 'activated_at = null, value_minor = null, balance_minor = 0');
  assert.deepEqual(await outcomes(), ['40', '40', '40', '40']);
  await bench.expiresIn(card, 0);
  assert.deepEqual(await outcomes(), ['54', '54', '54', '40']);
  await bench.setCard(card, `blocked_at = '${bench.now.toISOString()}'`);
  assert.deepEqual(await outcomes(), ['54', '43', '54', '40']);
  await bench.setCard(card, "closed = 'CANCELED'");
  assert.deepEqual(await outcomes(), ['44', '44', '44', '44']);
  assert.equal(await adjustment(UNKNOWN), '14');
  await bench.expiresIn(second, 0.001);
  assert.equal(await cashOut(second), 'ok');
  const batch = `where id = (select batch_id from vouchers where serial_number = ${second.serial})`;
  await bench.query(`update batches set status = 'CANCELED' ${batch}`);
  assert.equal(await cashOut(second), '14');
  await bench.query(`update batches set status = 'COMPLETED' ${batch}`);
  assert.equal(await bench.ofCard(second, 'balance_minor'), '2400');
});

test('a balance is neither negative nor beyond the limit', async () => {
  const [card, second] = await bench.cards(one, 2, { value: 25 });
  assert.deepEqual(
    [await adjustment(card, { amount: 2501n }), await adjustment(card, { amount: 2500n })],
    ['51', 'ok'],
  );
  const most = { to: true, amount: LIMIT - 2500n };
  assert.equal(await adjustment(second, most), '13');
  assert.equal(await adjustment(second, { ...most, amount: most.amount - 1n }), 'ok');
  assert.equal(await adjustment(second, { amount: 1n }), 'ok');
  assert.deepEqual(await bench.ofCards([card, second], 'balance_minor'), ['0', String(LIMIT - 2n)]);
});

test('a movement waits for another change of the voucher, and decides on the changed row', async () => {
  const card = await bench.card(one, 25);
  const call = () => cashOut(card, { amount: 2500n });
  assert.equal(await bench.behind(card, 'balance_minor = 2499', call), '51');
});

test('a movement between the wrong accounts or currencies is an error', async () => {
  const card = await bench.card(one, 25);
  await assert.rejects(adjustment(card, { with: accounts.FUNDING }), /no ADJUSTMENT goes between/);
  await assert.rejects(escheat(card, { to: true }), /no ESCHEAT goes between/);
  const euros = await bench.account('GOODWILL', undefined, 'EUR');
  await assert.rejects(adjustment(card, { with: euros }), /a voucher in USD and GOODWILL in EUR/);
});

test('a reinstatement names the expiry of the voucher with its account and amount, once', async () => {
  const [card, second] = await bench.cards(one, 2, { value: 25 });
  const { BREAKAGE, FLOAT } = accounts;
  const original = await expired(card, BREAKAGE);
  assert.equal(await reinstatement(card, bench.id()), '94');
  assert.equal(await reinstatement(card, await expired(card, BREAKAGE, 100n, 'CASH_OUT')), '94');
  assert.equal(await reinstatement(second, original), '94');
  assert.equal(await reinstatement(card, original, { amount: 99n }), '94');
  assert.equal(await reinstatement(card, await expired(card, FLOAT)), '94');
  assert.equal(await reinstatement(card, original), 'ok');
  assert.equal(await reinstatement(card, original), '94');
  assert.equal(await reinstatement(card, await expired(card, BREAKAGE)), 'ok');
  assert.equal(await reinstatement(second, await expired(second, BREAKAGE)), 'ok');
  assert.deepEqual(await bench.ofCards([card, second], 'balance_minor'), ['2700', '2600']);
});

test('a reinstatement from a float needs its money', async () => {
  const card = await bench.card(one, 25);
  const [before, original] = [await bench.floatOf(one), await expired(card, accounts.FLOAT)];
  const again = () => reinstatement(card, original, { with: accounts.FLOAT });
  await setFloat(one, 99n);
  assert.deepEqual([await again(), await bench.floatOf(one)], ['50', 99n]);
  assert.equal(await bench.ofCard(card, 'balance_minor'), '2500');
  await setFloat(one, 100n);
  assert.deepEqual([await again(), await bench.floatOf(one)], ['ok', 0n]);
  await setFloat(one, before);
});

test('money that reaches a voucher that is about to expire is swept', async () => {
  const cards = await bench.cards(one, 4, { value: 25 });
  const [past, soon, later, taken] = cards;
  const seconds = [-60, 300, 300.001, 60];
  for (const [index, card] of cards.entries()) await bench.expiresIn(card, seconds[index] ?? 0);
  assert.equal(await reinstatement(past, await expired(past, accounts.BREAKAGE)), 'ok');
  assert.equal(await adjustment(taken), 'ok');
  for (const card of [soon, later]) assert.equal(await adjustment(card, { to: true }), 'ok');
  const due = async () => [await bench.dueOf(past), await bench.dueOf(soon), await bench.dueOf(later)];
  assert.deepEqual([await due(), await bench.dueOf(taken)], [['0', '300', null], null]);
  await bench.expiresIn(soon, 200);
  assert.equal(await adjustment(soon, { to: true }), 'ok');
  assert.equal(await bench.dueOf(soon), '200');
});
