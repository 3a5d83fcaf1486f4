import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { ensureAccounts } from '../../src/ledger/journal.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { Bench, type Card } from '../support/statement.ts';

const bench = Bench.ofTests();
let one: Context;
let other: Context;

before(async () => {
  await bench.product('ISSUER', 'USD', 2, { expiryPolicy: 'issuer' });
  await bench.product('LATER', 'USD', 2, { activation: 'on-activation' });
  [one, other] = [await bench.merchant('ISSUER'), await bench.merchant('ISSUER')];
  await ensureAccounts(one.service.db, one.merchant.id, 'KWD');
});

const at = (seconds: number) => new Date(bench.now.getTime() + seconds * 1000);

/**
 * @param batch the batch whose sweep it is; without one, the vouchers expire by themselves
 * @returns how many vouchers were swept, and how many lapsed
 */
async function sweepAll(cards: readonly Card[], batch: number | null, now = bench.now) {
  const [serials, ids] = [cards.map(({ serial }) => serial), cards.map(() => bench.id())];
  const [row] = await bench.query<{ swept: number; lapsed: number }>(
    `select * from sweep_vouchers(0, '{${serials}}', '{${ids}}', ${batch}, '${now.toISOString()}')`,
  );
  return [row?.swept, row?.lapsed];
}

/** @returns how many vouchers were swept */
async function sweep(cards: readonly Card[], now = bench.now): Promise<number> {
  const [swept, lapsed] = await sweepAll(cards, null, now);
  assert.equal(lapsed, 0);
  return swept ?? -1;
}

const expiriesOf = (card: Card) =>
  bench.query<{ amount_minor: bigint; occurred_at: Date }>(
    `select debit_account, f.merchant_id as to, j.merchant_id, amount_minor, j.currency, j.occurred_at
     from journal j left join floats f on f.account_id = j.credit_account
     where kind = 'EXPIRY' and serial_number = ${card.serial}`,
  );

test('a sweep gives the float of each issuer all that expired, with a row for each voucher', async () => {
  const cards = await bench.cards(one, 4, { value: 25 });
  const [first, cent, empty, later] = cards as [Card, Card, Card, Card];
  const theirs = await bench.card(other, 25);
  const all = [theirs, ...cards];
  for (const card of all) await bench.expiresIn(card, 0);
  await bench.setCard(cent, 'balance_minor = 1');
  await bench.setCard(empty, 'balance_minor = 0');
  await bench.expiresIn(later, 0.001);
  const floats = [await bench.floatOf(one), await bench.floatOf(other)] as [bigint, bigint];
  assert.equal(await sweep(all), 3);
  assert.deepEqual(
    [await bench.floatOf(one), await bench.floatOf(other)],
    [floats[0] + 2501n, floats[1] + 2500n],
  );
  for (const [card, by, amount_minor] of [
    [first, one, 2500n],
    [cent, one, 1n],
    [theirs, other, 2500n],
  ] as const)
    assert.deepEqual(await expiriesOf(card), [
      {
        ...{ debit_account: card.serial, to: by.merchant.id, merchant_id: by.merchant.id },
        ...{ amount_minor, currency: 'USD', occurred_at: bench.now },
      },
    ]);
  assert.deepEqual([await expiriesOf(empty), await expiriesOf(later)], [[], []]);
  assert.deepEqual(await bench.ofCards(all, 'balance_minor'), ['0', '0', '0', '0', '2500']);
  assert.equal(await sweep(all), 0);
});

test('a row is dated at the expiry, unless a later row or a sealed slice comes after it', async (t) => {
  t.after(() => bench.served.clock.set(bench.now));
  const cards = (await bench.cards(one, 5, { value: 25 })) as [Card, Card, Card, Card, Card];
  const [plain, used, meanwhile, sealed, last] = cards;
  bench.served.clock.set(at(3600));
  await redeem({ ...one, now: at(3600) }, { ...meanwhile, amount: 1 });
  // Its last use counts, and not its first.
  await redeem({ ...one, now: at(3600) }, { ...used, amount: 1 });
  bench.served.clock.set(at(5400));
  await redeem({ ...one, now: at(5400) }, { ...used, amount: 1 });
  for (const card of [plain, used, meanwhile]) await bench.expiresIn(card, 3600);
  assert.equal(await sweep([plain, used, meanwhile], at(7200)), 3);
  const dateOf = async (card: Card) => (await expiriesOf(card))[0]?.occurred_at;
  assert.deepEqual(
    [await dateOf(plain), await dateOf(used), await dateOf(meanwhile)],
    [at(3600), at(7200), at(3600)],
  );
  await bench.query(`update books set sealed_until = '${at(3600).toISOString()}'`);
  await bench.expiresIn(sealed, 3599);
  await bench.expiresIn(last, 3600);
  assert.equal(await sweep([sealed, last], at(7200)), 2);
  assert.deepEqual([await dateOf(sealed), await dateOf(last)], [at(7200), at(3600)]);
  await bench.query('update books set sealed_until = null');
});

test('a sweep without an account for what expires is an error, and changes nothing', async () => {
  const [card, orphan] = (await bench.cards(one, 2, { value: 25 })) as [Card, Card];
  for (const each of [card, orphan]) await bench.expiresIn(each, 0);
  const batch = `(select batch_id from vouchers where serial_number = ${orphan.serial})`;
  await bench.query(`update batches set currency = 'XAU' where id = ${batch}`);
  await assert.rejects(sweep([card, orphan]), /there is no account for what expires/);
  await bench.query(`update batches set currency = 'USD' where id = ${batch}`);
  assert.deepEqual(await bench.ofCards([card, orphan], 'balance_minor'), ['2500', '2500']);
});

test('a sweep leaves a due date to each voucher that is still to be swept, and to no other', async () => {
  const cards = await bench.cards(one, 7, { value: 25 });
  const [swept, locked, later, laterEmpty, empty, closed, bystander] = cards as [
    Card,
    Card,
    Card,
    Card,
    Card,
    Card,
    Card,
  ];
  for (const card of [swept, locked, empty]) await bench.expiresIn(card, 0);
  for (const card of [later, laterEmpty, closed, bystander]) await bench.expiresIn(card, 60);
  for (const card of [laterEmpty, empty]) await bench.setCard(card, 'balance_minor = 0');
  await bench.setCard(locked, 'balance_minor = 1');
  await bench.setCard(closed, "closed = 'CANCELED', balance_minor = 0");
  const due = [swept, later, empty, closed].map(({ serial }) => `(${serial}, '${bench.now.toISOString()}')`);
  await bench.query(`insert into voucher_expiries (serial_number, due_at) values ${due}`);
  const lock = `select from vouchers where serial_number = ${locked.serial} for update`;
  assert.equal(await bench.during([lock], () => sweep(cards.slice(0, 6))), 1);
  const dues: (string | null)[] = [];
  for (const card of cards) dues.push(await bench.dueOf(card));
  assert.deepEqual(dues, [null, '0', '60', '60', null, null, null]);
  assert.equal(await sweep([later]), 0);
  assert.equal(await bench.dueOf(later), '60');
  assert.equal(await sweep([locked]), 1);
  assert.equal(await bench.dueOf(locked), null);
});

test('inactive vouchers lapse: each returns its price at once, or is counted for its batch', async () => {
  const shop = await bench.merchant('LATER');
  const cards = await bench.cards(shop, 6, { value: 25 });
  const [alone, sealed, counted, locked, later, closed] = cards as [Card, Card, Card, Card, Card, Card];
  const unpaid = await bench.card(await bench.merchant());
  for (const card of [...cards, unpaid]) await bench.expiresIn(card, 0);
  await bench.expiresIn(later, 60);
  await bench.expiresIn(sealed, -60);
  await bench.setCard(closed, "closed = 'CANCELED'");
  const float = await bench.floatOf(shop);
  await bench.query(`update books set sealed_until = '${bench.now.toISOString()}'`);
  assert.deepEqual(await sweepAll([alone, sealed, later, closed, unpaid], null, at(30)), [0, 2]);
  await bench.query('update books set sealed_until = null');
  assert.equal(await bench.floatOf(shop), float + 5000n);
  const released = await bench.query(
    `select j.serial_number as serial, j.amount_minor, j.occurred_at, j.merchant_id,
       j.debit_account = reserve_of(j.batch_id) as is_own, f.merchant_id as to
     from journal j join floats f on f.account_id = j.credit_account
     where kind = 'RELEASE' and j.merchant_id = ${shop.merchant.id} order by j.serial_number`,
  );
  const common = { amount_minor: 2500n, merchant_id: shop.merchant.id, is_own: true, to: shop.merchant.id };
  assert.deepEqual(released, [
    { serial: alone.serial, occurred_at: bench.now, ...common },
    { serial: sealed.serial, occurred_at: at(30), ...common },
  ]);

  const batch = Number(await bench.ofCard(counted, 'batch_id'));
  const lock = `select from vouchers where serial_number = ${locked.serial} for update`;
  assert.deepEqual(await bench.during([lock], () => sweepAll([counted, locked], batch)), [0, 1]);
  assert.equal(await bench.floatOf(shop), float + 5000n);
  const paid = await bench.ofCards([...cards, unpaid], 'payer_id is not null');
  assert.deepEqual(paid, ['false', 'false', 'false', 'true', 'true', 'true', 'false']);
  const dues: (string | null)[] = [];
  for (const card of [alone, counted, locked, later]) dues.push(await bench.dueOf(card));
  assert.deepEqual(dues, [null, null, '0', '60']);
  assert.deepEqual(await sweepAll([locked, alone], null), [0, 1]);
});
