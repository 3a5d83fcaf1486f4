import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { plainArray } from '../../src/db/sql.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { Refusal } from '../../src/refusal.ts';
import { activate } from '../../src/vouchers/activate.ts';
import {
  balance,
  CHECK_PINS,
  HISTORY_MAX,
  READ_BALANCES,
  type VoucherBalance,
} from '../../src/vouchers/balance.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { asOperator } from '../support/harness.ts';
import { Bench, BUCKET, type Card, UNKNOWN, wrong } from '../support/statement.ts';

const bench = Bench.ofTests();
let one: Context;
let other: Context;

before(async () => {
  await bench.product('DINAR', 'KWD', 3);
  [one, other] = [await bench.merchant(), await bench.merchant()];
});

const keysOf = (cards: readonly Card[]) =>
  [plainArray(cards.map(({ codeKey }) => codeKey)), plainArray(cards.map(({ pinKey }) => pinKey))] as const;

type Read = { ord: number; balance_minor: bigint; usable_minor: bigint };

/** The plain read of a list of vouchers: balance and usable amount of each, or nothing. */
async function readOf(cards: readonly Card[]): Promise<string[]> {
  const merchants = plainArray(cards.map(() => one.merchant.id));
  const rows = await bench.hot<Read>(READ_BALANCES, [BUCKET, merchants, ...keysOf(cards), 10, bench.now]);
  return cards.map((_, index) => {
    const row = rows.find(({ ord }) => ord === index + 1);
    return row ? `${row.balance_minor} ${row.usable_minor}` : 'nothing';
  });
}

/** The check of PINs under the lock: a status code or `ok` for each. */
async function checkOf(cards: readonly Card[]): Promise<string[]> {
  const rows = await bench.hot<{ ord: number; outcome: string }>(CHECK_PINS, [
    BUCKET,
    ...keysOf(cards),
    bench.now,
  ]);
  assert.equal(rows.length, cards.length);
  return rows.sort((first, second) => first.ord - second.ord).map(({ outcome }) => outcome);
}

/** The outcome of a request for a balance: a status code, or the balance and its usable part. */
async function outcomeOf(card: Card): Promise<string> {
  const answer = await balance(one, card).catch((error: unknown) => error);
  if (answer instanceof Refusal) return answer.code;
  if (answer instanceof Error) throw answer;
  const { balance: left, usable } = answer as VoucherBalance;
  return `${left.minor} ${usable.minor}`;
}

/** The references and amounts of a history, oldest first. */
const historyOf = ({ transactions }: VoucherBalance) =>
  transactions.map(({ reference, amount }) => [reference, amount.minor]);

/** Gives a voucher redemptions of one unit, and a reversal of the newest with an id before all others. */
async function history(card: Card, count: number): Promise<void> {
  const id = (nth: string) =>
    `(left(id_floor('${bench.now.toISOString()}')::text, 24) || lpad((${nth})::text, 12, '0'))::uuid`;
  const columns = `id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, original_id, previous_use_id, occurred_at`;
  const values = `debit_account, credit_account, 1, 'USD', ${one.merchant.id}, ${card.serial}`;
  const settled = `select ${card.serial} as debit_account, id as credit_account from accounts
    where merchant_id = ${one.merchant.id} and kind = 'SETTLEMENT' and currency = 'USD'`;
  const newest = id(String(count));
  await bench.query(`delete from journal where serial_number = ${card.serial}`);
  await bench.query(`delete from redemption_updates`);
  await bench.query(
    `insert into journal (${columns})
     select ${id('n')}, 'REDEMPTION'::entry_kind, ${values}, null, case when n > 1 then ${id('n - 1')} end,
       '${bench.now.toISOString()}'::timestamptz
     from (${settled}) s, generate_series(1, ${count}) n
     union all
     select ${id('0')}, 'REDEMPTION_REVERSAL', credit_account, debit_account, 1, 'USD', ${one.merchant.id},
       ${card.serial}, ${newest}, null, '${bench.now.toISOString()}'::timestamptz from (${settled}) s`,
  );
  await bench.query(`update vouchers set last_use_id = ${newest} where serial_number = ${card.serial}`);
  await bench.query(
    `
      insert into redemption_updates (original_id, reversal_id, new_minor, updated_at)
      values (${newest}, ${id('0')}, 0, now())`,
  );
}

describe('a balance', () => {
  test('is returned with the history of the voucher', async (t) => {
    const card = await bench.card(one);
    const at = (ms: number) => new Date(bench.now.getTime() + ms);
    // A booking is stamped when its call is sent.
    const sentAt = (context: Context, ms: number) => {
      bench.served.clock.set(at(ms));
      return { ...context, now: at(ms) };
    };
    t.after(() => bench.served.clock.set(bench.now));
    const opened = { voucher: card, value: 25, reference: 'opened' };
    const activation = await activate(sentAt(one, 1), opened);
    const first = await redeem(sentAt(one, 2), { ...card, amount: 10 });
    const second = await redeem(sentAt(other, 3), { ...card, amount: 5.5, reference: 'theirs' });
    const entry = ({ transaction }: typeof first, reference: string | null, timestamp: Date) => {
      const { transactionId, type, amount } = transaction;
      return { transactionId, type, amount, timestamp: timestamp.toISOString(), reference };
    };
    const money = (minor: bigint) => ({ minor, decimals: 2 });
    const amounts = { balance: money(950n), usable: money(950n), value: money(2500n) };
    assert.deepEqual(await balance(one, card), {
      ...{ serialNumber: card.serial, ...amounts },
      transactions: [entry(activation, 'opened', at(1)), entry(first, null, at(2)), entry(second, '', at(3))],
    });
    assert.deepEqual(historyOf(await balance(other, card)), [
      ['', 2500n],
      ['', 1000n],
      ['theirs', 550n],
    ]);
  });

  test('is in the units of the voucher, and shows the reference of the batch that activated it', async () => {
    const dinars = await bench.merchant('DINAR');
    const [[card], inactive] = [
      await bench.cards(dinars, 1, { value: 1.234, reference: 'b' }),
      await bench.card(one),
    ];
    assert.ok(card);
    const { balance: left, value, transactions } = await balance(dinars, card);
    assert.deepEqual([left, value], Array(2).fill({ minor: 1234n, decimals: 3 }));
    assert.deepEqual(
      transactions.map(({ reference, amount }) => [reference, amount]),
      [['b', { minor: 1234n, decimals: 3 }]],
    );
    const bare = await balance(one, inactive);
    assert.deepEqual([bare.balance.minor, bare.value, bare.transactions], [0n, null, []]);
  });

  test('is usable only if the voucher can be spent', async () => {
    for (const [outcome, what] of [
      ['0 0', "closed = 'REPLACED', balance_minor = 0"],
      ['2500 0', 'blocked_at = now()'],
      ['2500 0', "expires_at = '2030-01-15T08:00Z'"],
      ['2500 2500', "expires_at = '2030-01-15T08:00:00.001Z'"],
      ['2500 0', 'activated_at = null, value_minor = null'],
      ['0 0', 'balance_minor = 0'],
    ] as const) {
      const card = await bench.card(one, 25);
      await bench.setCard(card, what);
      assert.deepEqual([await outcomeOf(card), ...(await readOf([card]))], [outcome, outcome], what);
    }
  });

  test('shows the redemptions in force after updates', async () => {
    const card = await bench.card(one, 25);
    for (const reference of ['kept', 'less', 'gone']) await redeem(one, { ...card, amount: 5, reference });
    await updateRedemption(one, { reference: 'less', amountUsed: 2 });
    await updateRedemption(one, { reference: 'gone', amountUsed: 0 });
    const shown = await balance(one, card);
    assert.equal(shown.balance.minor, 1800n);
    assert.deepEqual(historyOf(shown).slice(1), [
      ['kept', 500n],
      ['NEW-less', 200n],
    ]);
  });

  test('shows the fifty newest entries of a long history, without reversed ones', async () => {
    const card = await bench.card(one, 25);
    for (const count of [49, 50, 51, 52, 57, 58, 59, 60, 61, 62, 200]) {
      await history(card, count);
      const shown = (await balance(one, card)).transactions.map(({ transactionId }) =>
        transactionId.slice(-4),
      );
      const expected = Array.from({ length: count - 1 }, (_, index) => String(index + 1).padStart(4, '0'));
      assert.deepEqual(shown, expected.slice(-HISTORY_MAX), String(count));
    }
  });

  test('starts the history of a successor with one activation of the amount it took over', async () => {
    const operator = asOperator(one.service);
    const card = await bench.card(one, 25);
    await redeem(one, { ...card, amount: 10, reference: 'before 1' });
    await redeem(one, { ...card, amount: 4, reference: 'before 2' });
    const middle = await replaceVoucher(operator, card.serial);
    const last = await replaceVoucher(operator, middle);
    const [row] = await bench.query<{ sealed: Buffer }>(
      `select sealed from vouchers where serial_number = ${last}`,
    );
    const successor = one.service.keys.open(last, row?.sealed as Buffer);
    await redeem(one, { ...successor, amount: 3, reference: 'after' });
    await updateRedemption(one, { reference: 'before 1', amountUsed: 2 });
    await updateRedemption(one, { reference: 'before 2', amountUsed: 0 });
    const shown = await balance(one, successor);
    assert.deepEqual(
      shown.transactions.map(({ type, reference, amount }) => [type, reference, amount.minor]),
      [
        // 11 at the replacement, and 8 and 4 by the updates.
        ['ACTIVATION', '', 2300n],
        ['REDEMPTION', 'after', 300n],
      ],
    );
    assert.deepEqual([shown.value?.minor, shown.balance.minor, shown.usable.minor], [2300n, 2000n, 2000n]);
    assert.deepEqual((await balance(one, card)).usable.minor, 0n);
  });

  test('is declined without the right code and PIN, or if the batch is not complete', async () => {
    const [card, canceled] = [await bench.card(one, 25), await bench.card(one, 25)];
    await bench.query(
      `
        update batches set status = 'CANCELED' where id = (select batch_id from vouchers
        where serial_number = ${canceled.serial})`,
    );
    const cards = [UNKNOWN, canceled, wrong(card), wrong(canceled)];
    assert.deepEqual(await readOf(cards), Array(4).fill('nothing'));
    assert.deepEqual(await checkOf(cards), ['14', '14', '55', '14']);
    assert.deepEqual(await checkOf([canceled]), ['14']);
    assert.equal(await bench.guardOf(canceled), '0 open');
    assert.equal(await outcomeOf(card), '2500 2500');
  });

  test('is returned at the position of its voucher in the call', async () => {
    const [first, second, third] = await bench.cards(one, 3, { value: 25 });
    await bench.setCard(first, 'balance_minor = 1');
    await bench.setCard(third, 'balance_minor = 3, wrong_pins = 1');
    const cards = [wrong(second), first, UNKNOWN, third];
    assert.deepEqual(await readOf(cards), ['nothing', '1 1', 'nothing', 'nothing']);
    assert.deepEqual(await checkOf(cards), ['55', 'ok', '14', 'ok']);
    await bench.setCard(second, 'wrong_pins = 0');
    const calls = [wrongPin(second), first, unknownCode(), third].map((card) => outcomeOf(card));
    assert.deepEqual(await Promise.all(calls), ['55', '1 1', '14', '3 3']);
  });
});

/** The card with another PIN, and an unknown code, as a request brings them. */
const wrongPin = (card: Card): Card => ({
  ...card,
  pin: String((Number(card.pin) + 1) % 10_000).padStart(4, '0'),
});
const unknownCode = (): Card => ({ ...UNKNOWN, code: '100000000000', pin: '0000' });

describe('wrong PINs in balance requests', () => {
  test('lock the voucher at the fifth, the tenth and the fifteenth', async () => {
    const card = await bench.card(one, 25);
    await bench.countsWrongPins(card, async () => (await checkOf([wrong(card)]))[0] as string);
    assert.deepEqual([await outcomeOf(card), await outcomeOf(wrongPin(card))], ['75', '75']);
    assert.equal(await bench.guardOf(card), '15 Infinity');
  });

  test('are reset by the right PIN once it is checked', async () => {
    const card = await bench.card(one, 25);
    await bench.setCard(card, "wrong_pins = 5, pin_locked_until = '2030-01-15T08:00:00.001Z'");
    const locked = await bench.placeOf(card);
    assert.equal(await outcomeOf(card), '75');
    assert.equal(await bench.placeOf(card), locked);
    await bench.setCard(card, "pin_locked_until = '2030-01-15T08:00Z'");
    assert.equal(await outcomeOf(card), '2500 2500');
    assert.equal(await bench.guardOf(card), '0 open');
    // Nothing is written where there is nothing to forget.
    const place = await bench.placeOf(card);
    assert.equal(await outcomeOf(card), '2500 2500');
    assert.deepEqual(await checkOf([card]), ['ok']);
    assert.equal(await bench.placeOf(card), place);
    await bench.setCard(card, 'wrong_pins = 1');
    assert.equal(await outcomeOf(card), '2500 2500');
    assert.equal(await bench.guardOf(card), '0 open');
  });

  test('are checked against the voucher as it is after the wait for its lock', async () => {
    const [card, next] = await bench.cards(one, 2, { value: 25 });
    assert.equal(await bench.behind(card, 'wrong_pins = 4', () => outcomeOf(wrongPin(card))), '55');
    assert.equal(await bench.guardOf(card), '5 15');
    const locked = "wrong_pins = 10, pin_locked_until = '2030-01-16T08:00Z'";
    assert.equal(await bench.behind(next, locked, () => outcomeOf(wrongPin(next))), '75');
    assert.equal(await bench.guardOf(next), '10 1440');
    // After a right PIN the voucher is read once more, so a change while the call waited is seen.
    await bench.setCard(next, 'wrong_pins = 1, pin_locked_until = null');
    assert.equal(await bench.behind(next, 'balance_minor = 1', () => outcomeOf(next)), '1 1');
    assert.equal(await bench.guardOf(next), '0 open');
    // A voucher that was sealed again meanwhile is no longer found by this key.
    const sealed = `code_key = '${'9'.repeat(32)}'`;
    await bench.setCard(next, 'wrong_pins = 1');
    assert.equal(await bench.behind(next, sealed, () => outcomeOf(wrongPin(next))), '14');
  });

  test('sent concurrently are checked five times, until the voucher is locked', async () => {
    const card = await bench.card(one, 25);
    const guess = async () => (await checkOf([wrong(card)]))[0];
    const outcomes = await Promise.all(Array.from({ length: 12 }, guess));
    assert.deepEqual(outcomes.sort(), [...Array(5).fill('55'), ...Array(7).fill('75')]);
    assert.equal(await bench.guardOf(card), '5 15');
  });
});
