import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Context } from '../src/context.ts';
import { AGAIN } from '../src/db/gather.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { updateRedemption } from '../src/redemptions/update.ts';
import { activate } from '../src/vouchers/activate.ts';
import { findBalances, lookUnderLock, type VoucherBalance } from '../src/vouchers/balance.ts';
import { Bench, type Card, UNKNOWN, wrong } from './statement.ts';

let bench: Bench;
let one: Context;
let other: Context;

before(async () => {
  bench = await Bench.open();
  await bench.product('DINAR', 'KWD', 3);
  [one, other] = [await bench.merchant(), await bench.merchant()];
});
after(() => bench.close());

type Asked = { readonly by?: Context; readonly card: Card; readonly now?: Date };

/** By whom a list of balances is looked up: as a call does, or under the lock at once, as where the history is very long. */
const WAYS = { 'a call': findBalances, 'the look under the lock': lookUnderLock } as const;
type Way = keyof typeof WAYS;
const BOTH = Object.keys(WAYS) as Way[];

function answersOf(asked: readonly Asked[], way: Way = 'a call') {
  const requests = asked.map(({ by = one, card, now = bench.now }) => {
    const { codeKey, pinKey } = card;
    return { context: { ...by, now }, codeKey, pinKey };
  });
  return WAYS[way](one.service.db, requests);
}

/** What came of each: a status code, or the balance and what of it can be used. */
async function outcomesOf(asked: readonly Asked[], way?: Way): Promise<string[]> {
  const answers = await answersOf(asked, way);
  return answers.map((answer) => {
    if (answer === AGAIN) return 'again';
    return typeof answer === 'string' ? answer : `${answer.balance.minor} ${answer.usable.minor}`;
  });
}

async function outcomeOf(card: Card, way?: Way): Promise<string> {
  return (await outcomesOf([{ card }], way))[0] as string;
}

async function balanceOf(asked: Asked, way: Way): Promise<VoucherBalance> {
  const [answer] = await answersOf([asked], way);
  return typeof answer === 'object' ? answer : assert.fail(String(answer));
}

/** The references and amounts of what led to a balance, the oldest first. */
const historyOf = ({ transactions }: VoucherBalance) =>
  transactions.map(({ reference, amount }) => [reference, amount.minor]);

const versionOf = async (card: Card) => Number(await bench.ofCard(card, 'version'));

/** Makes a voucher's journal hold as many redemptions of one unit, of which the newest was reversed before all others. */
async function history(card: Card, count: number): Promise<void> {
  const id = (nth: string) => `('00000000-0000-7000-8000-' || lpad((${nth})::text, 12, '0'))::uuid`;
  const columns = `id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, original_id, occurred_at`;
  const values = `debit_account, credit_account, 1, 'USD', ${one.merchant.id}, ${card.serial}`;
  const settled = `select ${card.serial} as debit_account, id as credit_account from accounts
    where merchant_id = ${one.merchant.id} and kind = 'SETTLEMENT' and currency = 'USD'`;
  await bench.tell(
    `delete from journal where id < '00000000-0000-7000-9000-000000000000' or serial_number = ${card.serial}`,
  );
  await bench.tell(
    `insert into journal (${columns})
     select ${id('n')}, 'REDEMPTION'::entry_kind, ${values}, null, now() from (${settled}) s, generate_series(1, ${count}) n
     union all
     select ${id('0')}, 'REDEMPTION_REVERSAL', credit_account, debit_account, 1, 'USD', ${one.merchant.id}, ${card.serial},
       ${id(String(count))}, now() from (${settled}) s`,
  );
}

for (const way of BOTH) {
  describe(`a balance by ${way}`, () => {
    test('tells what is left, and what led to it', async () => {
      const card = await bench.card(one);
      const at = (ms: number) => new Date(bench.now.getTime() + ms);
      const activation = await activate(
        { ...one, now: at(1) },
        { voucher: card, value: 25, reference: `${way} opened` },
      );
      const first = await redeem({ ...one, now: at(2) }, { ...card, amount: 10 });
      const second = await redeem({ ...other, now: at(3) }, { ...card, amount: 5.5, reference: `${way} theirs` });
      const told = await balanceOf({ card }, way);
      const entry = ({ transaction }: typeof first, reference: string | null, timestamp: Date) => {
        const { transactionId, type, amount } = transaction;
        return { transactionId, type, amount, timestamp: timestamp.toISOString(), reference };
      };
      const money = (minor: bigint) => ({ minor, decimals: 2 });
      const amounts = { balance: money(950n), usable: money(950n), value: money(2500n) };
      assert.deepEqual(told, {
        ...{ serialNumber: card.serial, ...amounts },
        transactions: [entry(activation, `${way} opened`, at(1)), entry(first, null, at(2)), entry(second, '', at(3))],
      });
      assert.deepEqual(historyOf(await balanceOf({ by: other, card }, way)), [
        ['', 2500n],
        ['', 1000n],
        [`${way} theirs`, 550n],
      ]);
    });

    test('is in the units of the voucher; a batch that activates its vouchers lends them its reference', async () => {
      const dinars = await bench.merchant('DINAR');
      const [card, inactive] = [await bench.cards(dinars, 1, { value: 1.234, reference: 'b' }), await bench.card(one)];
      assert.ok(card[0]);
      const { balance, value, transactions } = await balanceOf({ by: dinars, card: card[0] }, way);
      assert.deepEqual([balance, value], Array(2).fill({ minor: 1234n, decimals: 3 }));
      assert.deepEqual(
        transactions.map(({ reference, amount }) => [reference, amount]),
        [['b', { minor: 1234n, decimals: 3 }]],
      );
      const bare = await balanceOf({ card: inactive }, way);
      assert.deepEqual([bare.balance.minor, bare.value, bare.transactions], [0n, null, []]);
    });

    test('can be used where the voucher can be spent', async () => {
      for (const [outcome, what] of [
        ['2500 0', "closed = 'REPLACED'"],
        ['2500 0', 'blocked_at = now()'],
        ['2500 0', "expires_at = '2030-01-15T08:00Z'"],
        ['2500 2500', "expires_at = '2030-01-15T08:00:00.001Z'"],
        ['2500 0', 'activated_at = null, value_minor = null'],
        ['0 0', 'balance_minor = 0'],
      ] as const) {
        const card = await bench.card(one, 25);
        await bench.setCard(card, what);
        assert.equal(await outcomeOf(card, way), outcome, what);
      }
    });

    test('shows what is in force', async () => {
      const card = await bench.card(one, 25);
      for (const reference of ['kept', 'less', 'gone'])
        await redeem(one, { ...card, amount: 5, reference: `${way} ${reference}` });
      await updateRedemption(one, { reference: `${way} less`, amountUsed: 2 });
      await updateRedemption(one, { reference: `${way} gone`, amountUsed: 0 });
      const told = await balanceOf({ card }, way);
      assert.equal(told.balance.minor, 1800n);
      assert.deepEqual(historyOf(told).slice(1), [
        [`${way} kept`, 500n],
        [`NEW-${way} less`, 200n],
      ]);
    });

    test('shows the newest thousand of a long history, and none that was reversed', async () => {
      const card = await bench.card(one, 25);
      for (const count of [998, 999, 1000, 1001, 1005]) {
        await history(card, count);
        const shown = (await balanceOf({ card }, way)).transactions.map(({ transactionId }) => transactionId.slice(-4));
        const expected = Array.from({ length: count - 1 }, (_, index) => String(index + 1).padStart(4, '0'));
        assert.deepEqual(shown, expected.slice(-1000), String(count));
      }
    });

    test('is told to nobody without code and PIN, nor of a batch that is not complete', async () => {
      const [card, canceled] = [await bench.card(one, 25), await bench.card(one, 25)];
      await bench.tell(
        `update batches set status = 'CANCELED' where id = (select batch_id from vouchers where serial_number = ${canceled.serial})`,
      );
      const asked = [UNKNOWN, canceled, wrong(card)].map((each) => ({ card: each }));
      assert.deepEqual(await outcomesOf(asked, way), ['14', '14', '55']);
      assert.equal(await outcomeOf(wrong(canceled), way), '14');
      assert.equal(await bench.guardOf(canceled), '0 open');
      assert.equal(await outcomeOf(card, way), '2500 2500');
    });

    test('is one of a list: each is answered at its place', async () => {
      const cards = await bench.cards(one, 3, { value: 25 });
      const [first, second, third] = cards as [Card, Card, Card];
      await bench.setCard(first, 'balance_minor = 1');
      await bench.setCard(third, 'balance_minor = 3, wrong_pins = 1');
      const asked = [wrong(second), first, UNKNOWN, third].map((card) => ({ card }));
      assert.deepEqual(await outcomesOf(asked, way), ['55', '1 1', '14', '3 3']);
    });
  });
}

test('the statement under the lock looks at a voucher once in a list', async () => {
  const [card, next] = (await bench.cards(one, 2, { value: 25 })) as [Card, Card];
  const ask = (...cards: Card[]) =>
    outcomesOf(
      cards.map((each) => ({ card: each })),
      'the look under the lock',
    );
  assert.deepEqual(await ask(wrong(card), next, card, wrong(card)), ['55', '2500 2500', 'again', 'again']);
  assert.equal(await bench.guardOf(card), '1 open');
  const unknown = { ...UNKNOWN, codeKey: 'a'.repeat(32) };
  assert.deepEqual(await ask(unknown, UNKNOWN), ['14', '14']);
});

describe('wrong PINs', () => {
  test('are counted, and lock at the fifth, the tenth and the fifteenth', async () => {
    const card = await bench.card(one, 25);
    const version = await versionOf(card);
    assert.equal(await outcomeOf(wrong(card)), '55');
    assert.equal(await versionOf(card), version + 1);
    await bench.countsWrongPins(card, () => outcomeOf(wrong(card)));
    assert.deepEqual([await outcomeOf(card), await outcomeOf(wrong(card))], ['75', '75']);
    assert.equal(await bench.guardOf(card), '15 Infinity');
  });

  test('are forgotten with the right one, once it is looked at', async () => {
    const card = await bench.card(one, 25);
    await bench.setCard(card, "wrong_pins = 5, pin_locked_until = '2030-01-15T08:00:00.001Z'");
    const version = await versionOf(card);
    assert.equal(await outcomeOf(card), '75');
    assert.equal(await versionOf(card), version);
    await bench.setCard(card, "pin_locked_until = '2030-01-15T08:00Z'");
    assert.equal(await outcomeOf(card), '2500 2500');
    assert.deepEqual([await bench.guardOf(card), await versionOf(card)], ['0 open', version + 1]);
    for (const way of BOTH) assert.equal(await outcomeOf(card, way), '2500 2500');
    assert.equal(await versionOf(card), version + 1);
    for (const way of BOTH) {
      await bench.setCard(card, 'wrong_pins = 1');
      assert.equal(await outcomeOf(card, way), '2500 2500');
      assert.equal(await bench.guardOf(card), '0 open');
      await bench.setCard(card, "pin_locked_until = '2030-01-15T08:00:00.001Z'");
      assert.equal(await outcomeOf(card, way), '75');
      await bench.setCard(card, 'pin_locked_until = null');
    }
  });

  test('are looked at as the voucher is when its turn comes', async () => {
    const [card, next] = (await bench.cards(one, 2, { value: 25 })) as [Card, Card];
    assert.equal(await bench.behind(card, 'wrong_pins = 4', () => outcomeOf(wrong(card))), '55');
    assert.equal(await bench.guardOf(card), '5 15');
    const locked = "wrong_pins = 10, pin_locked_until = '2030-01-16T08:00Z'";
    assert.equal(await bench.behind(next, locked, () => outcomeOf(wrong(next))), '75');
    assert.equal(await bench.guardOf(next), '10 1440');
    // What changed is not told with a history that is older.
    await bench.setCard(next, 'wrong_pins = 1, pin_locked_until = null');
    assert.equal(await bench.behind(next, 'balance_minor = 1', () => outcomeOf(next)), 'again');
    assert.equal(await bench.guardOf(next), '1 open');
    assert.equal(await outcomeOf(next), '1 1');
    // One that was sealed anew meanwhile is no longer found by this key.
    const sealed = `code_key = '${'9'.repeat(32)}'`;
    assert.equal(await bench.behind(next, sealed, () => outcomeOf(wrong(next))), '14');
  });

  test('of any number at the same time are looked at five times', async () => {
    const card = await bench.card(one, 25);
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => outcomeOf(wrong(card))));
    assert.deepEqual(outcomes.sort(), [...Array(5).fill('55'), ...Array(7).fill('75')]);
    assert.equal(await bench.guardOf(card), '5 15');
  });
});
