import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Context } from '../src/context.ts';
import { plainArray, textArray } from '../src/db/sql.ts';
import { FIND_UPDATES, UPDATE_REDEMPTIONS } from '../src/redemptions/queries.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { activate } from '../src/vouchers/activate.ts';
import { replaceVoucher } from '../src/vouchers/operate.ts';
import { asOperator } from './harness.ts';
import { Bench, BUCKET, type Card } from './statement.ts';

/** `amount` in ten-thousandths of a major unit. */
type Asked = {
  readonly by: Context;
  readonly reference: string;
  readonly amount: number;
  readonly reversalId?: string;
  readonly newId?: string;
};
type Row = {
  ord: number;
  outcome: string;
  original_id: string | null;
  original_minor: bigint | null;
  original_at: Date | null;
  reference: string | null;
  serial_number: bigint | null;
  decimals: number | null;
  reversal_id: string | null;
  updated_at: Date | null;
  new_id: string | null;
  new_minor: bigint | null;
};

let bench: Bench;
let one: Context;
let other: Context;
let references = 0;

before(async () => {
  bench = await Bench.open();
  await bench.product('DINAR', 'KWD', 3);
  [one, other] = [await bench.merchant(), await bench.merchant()];
});
after(() => bench.close());

/** A redemption to update: its voucher, its reference and its id. */
async function redeemed(amount = 10, by = one, value = 25) {
  const card = await bench.card(by, value);
  const reference = `sale-${++references}`;
  const { transaction } = await redeem(by, { ...card, amount, reference });
  return { card, reference, id: transaction.transactionId, by };
}

async function rowsOf(asked: readonly Asked[], now = bench.now): Promise<Row[]> {
  const rows = await bench.hot<Row>(UPDATE_REDEMPTIONS, [
    BUCKET,
    plainArray(asked.map(({ by }) => by.merchant.id)),
    textArray(asked.map(({ reference }) => reference)),
    null,
    plainArray(asked.map(({ amount }) => amount)),
    plainArray(asked.map(({ reversalId }) => reversalId ?? bench.id())),
    plainArray(asked.map(({ newId }) => newId ?? bench.id())),
    plainArray(asked.map(() => bench.id())),
    now,
  ]);
  return rows.sort((first, second) => first.ord - second.ord);
}

async function outcomeOf(by: Context, reference: string, amount: number, now = bench.now): Promise<string> {
  const rows = await rowsOf([{ by, reference, amount }], now);
  assert.equal(rows.length, 1);
  return rows[0]?.outcome as string;
}

const found = (by: Context, ...sought: string[]) =>
  bench.hot<Row>(FIND_UPDATES, [
    BUCKET,
    plainArray(sought.map(() => by.merchant.id)),
    textArray(sought),
    null,
  ]);

const entriesOf = (card: Card) =>
  bench.tell<object>(
    `
      select id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
        reference,
       original_id, occurred_at
     from journal where serial_number = ${card.serial} and original_id is not null order by amount_minor,
       kind`,
  );

describe('an update', () => {
  for (const newAmount of [24, 3, 0.01, 0]) {
    test(`to ${newAmount} reverses the redemption, books the new one, and tells both`, async () => {
      const { card, reference, id } = await redeemed(10);
      const [settlement] = await bench.tell<{ id: bigint }>(
        `select credit_account as id from journal where id = '${id}'`,
      );
      const [reversalId, newId] = [bench.id(), bench.id()];
      const later = new Date(bench.now.getTime() + 5000);
      const rows = await rowsOf(
        [{ by: one, reference, amount: newAmount * 10_000, reversalId, newId }],
        later,
      );
      const told = {
        ...{ ord: 1, outcome: 'ok', original_id: id, original_minor: 1000n, original_at: bench.now },
        ...{
          reference,
          serial_number: card.serial,
          sealed: rows[0] && Reflect.get(rows[0], 'sealed'),
        },
        ...{ decimals: 2, reversal_id: reversalId, updated_at: later },
        ...{ new_id: newAmount > 0 ? newId : null, new_minor: BigInt(newAmount * 100) },
      };
      const { outcome, ...update } = told;
      assert.deepEqual(rows, [told]);
      assert.equal(outcome, 'ok');
      assert.deepEqual(await found(one, reference), [update]);
      const accounts = { of: card.serial, to: settlement?.id };
      const common = {
        ...{ currency: 'USD', merchant_id: one.merchant.id, serial_number: card.serial },
        ...{ original_id: id, occurred_at: later },
      };
      const reversal = { id: reversalId, kind: 'REDEMPTION_REVERSAL', debit_account: accounts.to };
      const renewed = {
        id: newId,
        kind: 'REDEMPTION',
        debit_account: accounts.of,
        credit_account: accounts.to,
      };
      const entries = [
        {
          ...reversal,
          credit_account: accounts.of,
          amount_minor: 1000n,
          ...common,
          reference: `CANCEL-${reference}`,
        },
        ...(newAmount > 0
          ? [{ ...renewed, amount_minor: BigInt(newAmount * 100), ...common, reference: `NEW-${reference}` }]
          : []),
      ];
      const order = (list: object[]) => list.map((each) => JSON.stringify(each, text)).sort();
      const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
      assert.deepEqual(
        order((await entriesOf(card)).map((each) => Object.fromEntries(Object.entries(each).sort()))),
        order(entries.map((each) => Object.fromEntries(Object.entries(each).sort()))),
      );
      assert.equal(await bench.ofCard(card, 'balance_minor'), String(2500 - newAmount * 100));
    });
  }

  test('happens once: the second is told of the first, and changes nothing', async () => {
    const { card, reference } = await redeemed(10);
    assert.equal(await outcomeOf(one, reference, 50_000), 'ok');
    for (const amount of [50_000, 0, 250_000, 9_990_000])
      assert.equal(await outcomeOf(one, reference, amount), '58');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2000');
    assert.equal((await entriesOf(card)).length, 2);
  });

  test('takes the whole balance, and not a unit more', async () => {
    const { card, reference } = await redeemed(10);
    assert.equal(await outcomeOf(one, reference, 250_100), '51');
    assert.equal(await outcomeOf(one, reference, 250_000), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '0');
  });

  test('is in the units of the voucher', async () => {
    const { card, reference, by } = await redeemed(1.234, await bench.merchant('DINAR'));
    assert.equal(await outcomeOf(by, reference, 1), '13');
    assert.equal(await outcomeOf(by, reference, 10), 'ok');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '24999');
    assert.deepEqual(
      (await found(by, reference)).map(({ decimals, new_minor }) => [decimals, new_minor]),
      [[3, 1n]],
    );
    const dollars = await redeemed(10);
    assert.equal(await outcomeOf(one, dollars.reference, 10), '13');
    assert.equal(await outcomeOf(one, dollars.reference, 100_010), '13');
    assert.equal(await outcomeOf(one, 'unknown', 10), '60');
  });
});

describe('what is updated', () => {
  test('is a redemption of the merchant, by its reference, or by its id where it has none', async () => {
    const { reference, id, card } = await redeemed(10);
    assert.equal(await outcomeOf(other, reference, 0), '60');
    assert.equal(await outcomeOf(one, id, 0), '60');
    const { transaction } = await redeem(one, { ...card, amount: 1 });
    const [row] = await rowsOf([{ by: one, reference: transaction.transactionId, amount: 0 }]);
    assert.deepEqual([row?.outcome, row?.reference], ['ok', null]);
    assert.equal((await found(one, transaction.transactionId))[0]?.original_id, transaction.transactionId);
    const entries = await entriesOf(card);
    assert.deepEqual(
      entries.map((entry) => Reflect.get(entry, 'reference')),
      [null],
    );
    await bench.tell(`update claims set operation = 'activate' where id = '${id}'`);
    assert.equal(await outcomeOf(one, reference, 0), '60');
    assert.deepEqual(await found(one, reference), []);
  });

  test('may be on a voucher that cannot be spent, if nothing more is taken from it', async () => {
    const states = [
      ['43', 'blocked_at = now()'],
      ['43', "blocked_at = now(), expires_at = '2029-01-01'"],
      ['54', "expires_at = '2030-01-15T08:00:00Z'"],
    ] as const;
    for (const [code, what] of states) {
      for (const [amount, outcome] of [
        [100_100, code],
        [100_000, 'ok'],
        [90_000, 'ok'],
      ] as const) {
        const { card, reference } = await redeemed(10);
        await bench.setCard(card, what);
        assert.equal(await outcomeOf(one, reference, amount), outcome, what);
      }
    }
    const { card, reference } = await redeemed(10);
    await bench.setCard(card, "expires_at = '2030-01-15T08:00:00.001Z'");
    assert.equal(await outcomeOf(one, reference, 110_000), 'ok');
  });

  test('is on no voucher that was canceled, not even to give money back', async () => {
    const { card, reference } = await redeemed(10);
    await bench.setCard(card, "closed = 'CANCELED', blocked_at = now()");
    for (const amount of [0, 200_000]) assert.equal(await outcomeOf(one, reference, amount), '44');
    assert.deepEqual(await entriesOf(card), []);
  });

  test('may be on a voucher that was replaced: the last of the chain gets the money back, and none gives more', async () => {
    for (const [amount, given] of [
      [0, 1000n],
      [40_000, 600n],
      [100_000, 0n],
    ] as const) {
      const { card, reference } = await redeemed(10);
      const operator = asOperator(one.service);
      const middle = await replaceVoucher(operator, card.serial);
      const last = await replaceVoucher(operator, middle);
      assert.equal(await outcomeOf(one, reference, 100_100), '44');
      const held = () =>
        bench.tell(`select serial_number, balance_minor, value_minor from vouchers
          where serial_number in (${card.serial}, ${middle}, ${last}) order by serial_number`);
      const row = (serial_number: bigint, balance_minor: bigint, value_minor: bigint) => ({
        serial_number,
        balance_minor,
        value_minor,
      });
      assert.deepEqual(await held(), [
        row(card.serial, 0n, 2500n),
        row(middle, 0n, 1500n),
        row(last, 1500n, 1500n),
      ]);
      assert.equal(await outcomeOf(one, reference, amount), 'ok');
      const after = row(last, 1500n + given, 1500n + given);
      assert.deepEqual(await held(), [row(card.serial, 0n, 2500n), row(middle, 0n, 1500n), after]);
      const moved = `
        select debit_account, credit_account, amount_minor from journal where serial_number = ${last}
        and kind = 'REPLACEMENT' and original_id is not null`;
      const entry = { debit_account: card.serial, credit_account: last, amount_minor: given };
      assert.deepEqual(await bench.tell(moved), given > 0n ? [entry] : []);
      assert.equal(await outcomeOf(one, reference, 0), '58');
    }
  });

  test('is told as blocked or expired before it is told as updated, where more is asked for', async () => {
    const { card, reference } = await redeemed(10);
    await outcomeOf(one, reference, 50_000);
    await bench.setCard(card, 'blocked_at = now()');
    assert.deepEqual(
      [await outcomeOf(one, reference, 110_000), await outcomeOf(one, reference, 0)],
      ['43', '58'],
    );
  });
});

test('a list updates a voucher once: the first goes through, whatever comes of it, and the others come again', async () => {
  const { card, reference } = await redeemed(10);
  const second = `sale-${++references}`;
  await redeem(one, { ...card, amount: 5, reference: second });
  const [next, poor, bystander] = [await redeemed(10, other), await redeemed(10), await redeemed(10)];
  const rows = await rowsOf([
    { by: one, reference, amount: 10_000 },
    { by: other, reference: next.reference, amount: 0 },
    { by: one, reference: second, amount: 0 },
    { by: one, reference: 'unknown', amount: 0 },
    { by: one, reference: 'unknown too', amount: 0 },
    { by: one, reference: poor.reference, amount: 250_100 },
  ]);
  assert.deepEqual(
    rows.map(({ outcome }) => outcome),
    ['ok', 'ok', 'again', '60', '60', '51'],
  );
  const balances = await bench.ofCards([card, next.card, poor.card, bystander.card], 'balance_minor');
  assert.deepEqual(balances, ['1900', '2500', '1500', '1500']);
  assert.deepEqual([await entriesOf(poor.card), await entriesOf(bystander.card)], [[], []]);
});

test('an update is found by its redemption alone', async () => {
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

test('a call that waited for a voucher decides on it as it is then', async () => {
  for (const [outcome, what, amount] of [
    ['44', "closed = 'CANCELED'", 0],
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

test('a call that waited while its voucher was replaced gives the money to the new one', async () => {
  const { card, reference } = await redeemed(10);
  const serial = card.serial + 64n;
  const replace = `
    select replace_voucher(0, ${card.serial}, ${serial}, gen_random_uuid(), gen_random_uuid(), '',
    gen_random_uuid(), now())`;
  const locked = `select * from lock_voucher(0, ${card.serial})`;
  assert.equal(await bench.during([locked, replace], () => outcomeOf(one, reference, 0)), 'ok');
  const [held] = await bench.tell(`select balance_minor from vouchers where serial_number = ${serial}`);
  assert.deepEqual(held, { balance_minor: 2500n });
});

test('of two updates at the same time one goes through, and the other is shown it', async () => {
  const { card, reference } = await redeemed(10);
  // Neither of them sees the other's before it has the lock.
  const ask = async (amount: number) => (await rowsOf([{ by: one, reference, amount }]))[0];
  const both = () => Promise.all([ask(10_000), ask(20_000)]);
  const rows = await bench.behind(card, 'wrong_pins = 0', both, 2);
  assert.deepEqual(rows.map((row) => row?.outcome).sort(), ['58', 'ok']);
  assert.equal(rows[0]?.new_id, rows[1]?.new_id);
  assert.equal((await entriesOf(card)).length, 2);
});

test('is told to the endpoints that want it, and to no other', async () => {
  const { merchant, isTold } = await bench.listened('redemption.updated');
  const { reference } = await redeemed(10, merchant);
  const id = bench.id();
  await rowsOf([{ by: merchant, reference, amount: 10_000, reversalId: id }]);
  await outcomeOf(merchant, reference, 20_000);
  await isTold(id);
});
