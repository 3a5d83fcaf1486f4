import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { asOperator } from '../support/harness.ts';
import { updates } from '../support/updates.ts';

const { bench, merchants, redeemed, rowsOf, outcomesOf, outcomeOf, found, entriesOf } = updates();
let one: Context;
let other: Context;

before(() => {
  ({ one, other } = merchants);
});

test('a call decides one update of each voucher, and returns the others to be sent again', async () => {
  const { card, reference } = await redeemed(10);
  const second = 'the second sale';
  await redeem(one, { ...card, amount: 5, reference: second });
  const [next, poor, bystander] = [await redeemed(10, other), await redeemed(10), await redeemed(10)];
  const outcomes = await outcomesOf([
    { by: one, reference, amount: 10_000 },
    { by: other, reference: next.reference, amount: 0 },
    { by: one, reference: second, amount: 0 },
    { by: one, reference: 'unknown', amount: 0 },
    { by: one, reference: 'unknown too', amount: 0 },
    { by: one, reference: poor.reference, amount: 250_100 },
  ]);
  assert.deepEqual(outcomes, ['ok', 'ok', 'again', '60', '60', '51']);
  const balances = await bench.ofCards([card, next.card, poor.card, bystander.card], 'balance_minor');
  assert.deepEqual(balances, ['1900', '2500', '1500', '1500']);
  assert.deepEqual(await bench.ofCards([card, next.card], 'value_minor'), ['2500', '2500']);
  assert.deepEqual([await entriesOf(poor.card), await entriesOf(bystander.card)], [[], []]);
});

test('a call updates redemptions of replaced vouchers beside others', async () => {
  const [replaced, kept] = [await redeemed(10), await redeemed(10)];
  const successor = await replaceVoucher(asOperator(one.service), replaced.card.serial);
  const outcomes = await outcomesOf([
    { by: one, reference: 'unknown', amount: 0 },
    { by: one, reference: replaced.reference, amount: 40_000 },
    { by: one, reference: kept.reference, amount: 0 },
  ]);
  assert.deepEqual(outcomes, ['60', 'ok', 'ok']);
  const last = { ...replaced.card, serial: successor };
  assert.deepEqual(await bench.ofCards([replaced.card, last, kept.card], 'balance_minor'), [
    '0',
    '2100',
    '2500',
  ]);
});

test('a call that has redemptions of a voucher and of its replacement updates one of them', async () => {
  const [replaced, successor] = [await redeemed(10), await redeemed(10)];
  const replacement = `closed = 'REPLACED', balance_minor = 0, replaced_by = ${successor.card.serial}`;
  await bench.setCard(replaced.card, replacement);
  const outcomes = await outcomesOf([
    { by: one, reference: replaced.reference, amount: 0 },
    { by: one, reference: successor.reference, amount: 0 },
  ]);
  assert.deepEqual(outcomes, ['ok', 'again']);
  assert.deepEqual(await bench.ofCards([replaced.card, successor.card], 'balance_minor'), ['0', '2500']);
});

test('a call locks vouchers and their replacements in the order of their serial numbers', async () => {
  const replaced = await redeemed(10);
  const successor = await replaceVoucher(asOperator(one.service), replaced.card.serial);
  const later = await redeemed(10);
  const lock = (serial: bigint) => `select from vouchers where serial_number = ${serial} for update nowait`;
  const call = () =>
    outcomesOf([
      { by: one, reference: later.reference, amount: 0 },
      { by: one, reference: replaced.reference, amount: 0 },
    ]);
  const outcomes = await bench.during([lock(successor)], call, 1, [lock(later.card.serial)]);
  assert.deepEqual(outcomes, ['ok', 'ok']);
});

test('a redemption given by its id is one of the merchant, and not the one of an update', async () => {
  const { card, id, reference } = await redeemed(10);
  const [reversalId, newId] = [bench.id(), bench.id()];
  const outcomeById = async (by: Context, original: string) =>
    (await rowsOf([{ by, reference, original, amount: 50_000, reversalId, newId }]))[0]?.outcome;
  const [activation] = await bench.query<{ id: string }>(
    `select id from journal where serial_number = ${card.serial} and kind = 'ACTIVATION'`,
  );
  assert.equal(await outcomeById(other, id), '60');
  assert.equal(await outcomeById(one, activation?.id ?? ''), '60');
  assert.equal(await outcomeById(one, id), 'ok');
  for (const later of [reversalId, newId]) assert.equal(await outcomeById(one, later), '60');
});

test('an update of a voucher that expires within five minutes lets it be swept by itself', async () => {
  const dueAfter = async (seconds: number, amount: number, due?: string) => {
    const { card, reference } = await redeemed(10);
    await bench.expiresIn(card, seconds);
    if (due)
      await bench.query(
        `insert into voucher_expiries (serial_number, due_at) values (${card.serial}, '${due}')`,
      );
    assert.equal(await outcomeOf(one, reference, amount), 'ok');
    return bench.dueOf(card);
  };
  const bystander = await redeemed(10);
  await bench.expiresIn(bystander.card, 240);
  const dues: (string | null)[] = [];
  for (const seconds of [-86_400, 240, 300, 300.001]) dues.push(await dueAfter(seconds, 90_000));
  assert.deepEqual(dues, ['0', '240', '300', null]);
  assert.equal(await dueAfter(240, 249_900), '240');
  assert.equal(await dueAfter(240, 250_000), null);
  assert.equal(await dueAfter(240, 0, bench.now.toISOString()), '0');
  assert.equal(await bench.dueOf(bystander.card), null);
});

test('an update is found only by the reference of its redemption', async () => {
  const bare = await bench.card(one);
  await activate(one, { voucher: bare, value: 25, reference: 'both' });
  await redeem(one, { ...bare, amount: 5, reference: 'both' });
  await outcomeOf(one, 'both', 10_000);
  assert.equal((await found(one, 'both'))[0]?.new_minor, 100n);
  const { reference, card } = await redeemed(10);
  assert.deepEqual(await found(one, reference), []);
  const full = await redeemed(10);
  await outcomeOf(one, reference, 10_000);
  await outcomeOf(one, full.reference, 0);
  assert.deepEqual(await found(other, reference), []);
  for (const prefix of ['NEW-', 'CANCEL-']) assert.deepEqual(await found(one, prefix + reference), []);
  const rows = (await found(one, reference, 'unknown', full.reference)).sort(
    (first, second) => first.ord - second.ord,
  );
  assert.deepEqual(
    rows.map(({ ord, new_minor, serial_number }) => [ord, new_minor, serial_number]),
    [
      [1, 100n, card.serial],
      [3, 0n, full.card.serial],
    ],
  );
});

test('a call that waited for a voucher decides on its new state', async () => {
  for (const [outcome, what, amount] of [
    ['44', "closed = 'CANCELED', balance_minor = 0", 0],
    ['43', 'blocked_at = now()', 110_000],
    ['54', "expires_at = '2029-01-01'", 110_000],
    ['51', 'balance_minor = 0', 110_000],
  ] as const) {
    const { card, reference } = await redeemed(10);
    assert.equal(await bench.behind(card, what, () => outcomeOf(one, reference, amount)), outcome, what);
  }
  const { card, reference } = await redeemed(10);
  assert.equal(await bench.behind(card, 'balance_minor = 900', () => outcomeOf(one, reference, 0)), 'ok');
  assert.equal(await bench.ofCard(card, 'balance_minor'), '1900');
});

test('a call that waited while its voucher was replaced returns the money to the new voucher', async () => {
  const { card, reference } = await redeemed(10);
  const drawn = `select nextval('voucher_numbers') * 64 as serial`;
  const [{ serial }] = (await bench.query<{ serial: bigint }>(drawn)) as [{ serial: bigint }];
  const replace = `
    select replace_voucher(0, ${card.serial}, ${serial}, gen_random_uuid(), gen_random_uuid(), '',
    '${bench.id()}', '${bench.now.toISOString()}')`;
  const locked = `select * from lock_voucher(0, ${card.serial})`;
  assert.equal(await bench.during([locked, replace], () => outcomeOf(one, reference, 0)), 'ok');
  const [held] = await bench.query(`select balance_minor from vouchers where serial_number = ${serial}`);
  assert.deepEqual(held, { balance_minor: 2500n });
});

test('one of two concurrent updates is booked, and the other one gets its result', async () => {
  const { card, reference } = await redeemed(10);
  // Neither of them sees the other's before it has the lock.
  const updateTo = async (amount: number) => (await rowsOf([{ by: one, reference, amount }]))[0];
  const both = () => Promise.all([updateTo(10_000), updateTo(20_000)]);
  const rows = await bench.behind(card, 'wrong_pins = 0', both, 2);
  assert.deepEqual(rows.map((row) => row?.outcome).sort(), ['58', 'ok']);
  assert.equal(rows[0]?.new_id, rows[1]?.new_id);
  assert.equal((await entriesOf(card)).length, 2);
});

test('an update is announced to the endpoints that subscribe to it, and to no other', async () => {
  const { merchant, isAnnounced } = await bench.subscribed('redemption.updated');
  const { reference } = await redeemed(10, merchant);
  const id = bench.id();
  await rowsOf([{ by: merchant, reference, amount: 10_000, reversalId: id }]);
  await outcomeOf(merchant, reference, 20_000);
  await isAnnounced(id);
});
