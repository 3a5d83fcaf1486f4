import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Context } from '../src/context.ts';
import type { HotStatement } from '../src/db/sql.ts';
import { findTransaction } from '../src/ledger/transactions.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { findUpdate, updateRedemption } from '../src/redemptions/update.ts';
import { Refusal } from '../src/refusal.ts';
import { activate } from '../src/vouchers/activate.ts';
import { balance } from '../src/vouchers/balance.ts';
import { Bench, type Card, UNKNOWN } from './statement.ts';

/**
 * What shares a statement, of each operation that is gathered. The statements stay right whatever they are sent; but what only one
 * of can go through is sent once, and one merchant's calls wait for no flood of another's.
 */

let bench: Bench;
let one: Context;
let other: Context;
/** Whose calls each statement was sent with. What follows one, for those that it left open, is left out. */
let sent: { readonly name: string; readonly merchants: readonly number[] }[] = [];

before(async () => {
  bench = await Bench.open();
  [one, other] = [await bench.merchant(), await bench.merchant()];
  const { service } = one;
  const hot = <Row>(statement: HotStatement, values: readonly unknown[]) => {
    const merchants = String(values[0]).slice(1, -1).split(',').map(Number);
    if (sent[0] === undefined || sent[0].name === statement.name) sent.push({ name: statement.name, merchants });
    return service.db.hot<Row>(statement, values);
  };
  const seen = { ...service, db: { ...service.db, hot } };
  [one, other] = [
    { ...one, service: seen },
    { ...other, service: seen },
  ];
});
after(() => bench.close());

/** A call for a voucher under a reference, where it has one. */
type Ask = (by: Context, card: Card, reference?: string) => Promise<unknown>;

/** With the operations whose calls hold a voucher, and those whose calls hold a reference. */
const operations: Record<string, { readonly ask: Ask; readonly holds: readonly ('voucher' | 'reference')[] }> = {
  balance: { ask: (by, card) => balance(by, card), holds: ['voucher'] },
  redeem: {
    ask: (by, card, reference) => redeem(by, { ...card, amount: 1, reference }),
    holds: ['voucher', 'reference'],
  },
  'activate by code': {
    ask: (by, card, reference) => activate(by, { voucher: card, reference }),
    holds: ['voucher', 'reference'],
  },
  'activate by serial number': {
    ask: (by, card, reference) => activate(by, { voucher: { serialNumber: Number(card.serial) }, reference }),
    holds: ['voucher', 'reference'],
  },
  update: { ask: (by, _, reference = '-') => updateRedemption(by, { reference, amountUsed: 0 }), holds: ['reference'] },
  'find an update': { ask: (by, _, reference = '-') => findUpdate(by, reference), holds: [] },
  'find a transaction': { ask: (by, _, reference = '-') => findTransaction(by, reference), holds: [] },
};

/** Calls of one moment: how many rows each of the statements had that they were sent in. */
async function rowsOf(calls: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  sent = [];
  const isRefusal = (error: unknown) => (error instanceof Refusal ? undefined : Promise.reject(error));
  await Promise.all(calls.map((call) => call().catch(isRefusal)));
  return sent.map(({ merchants }) => merchants.length);
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)),
  );

describe('a call whose voucher changes while it waits', () => {
  test('is asked again, and told as the voucher is then', async () => {
    const [spent, closed] = (await bench.cards(one, 2, { value: 25 })) as [Card, Card];
    const raced = { amount: 1, reference: 'raced' };
    assert.equal(
      await bench.behind(spent, 'balance_minor = 0', () => codeOf(redeem(one, { ...spent, ...raced }))),
      '42',
    );
    await redeem(one, { ...closed, amount: 1, reference: 'to update' });
    const update = () => codeOf(updateRedemption(one, { reference: 'to update', amountUsed: 0 }));
    assert.equal(await bench.behind(closed, "closed = 'CANCELED'", update), '44');
    const open = await bench.card(one);
    const opening = () => codeOf(activate(one, { voucher: open, reference: 'raced' }));
    assert.equal(await bench.behind(open, 'blocked_at = now()', opening), '43');
    await bench.setCard(spent, 'wrong_pins = 1');
    const { balance: left } = await bench.behind(spent, 'balance_minor = 7', () => balance(one, spent));
    assert.equal(left.minor, 7n);
  });
});

test('a merchant is given its accounts in a currency as it needs them', async () => {
  await bench.product('DINAR', 'KWD', 3);
  const [card] = await bench.cards(await bench.merchant('DINAR'), 1, { value: 5 });
  const [bare] = await bench.cards(await bench.merchant('DINAR'), 1);
  assert.ok(card && bare);
  const redeemed = redeem(one, { ...card, amount: 1.234 });
  assert.deepEqual((await redeemed).transaction.amount, { minor: 1234n, decimals: 3 });
  assert.equal(await codeOf(activate(other, { voucher: bare, value: 1 })), '50');
});

test('a reference of a form that none can have is refused by every operation that takes one', async () => {
  const card = await bench.card(one, 25);
  const taking = Object.entries(operations).filter(([name]) => name !== 'balance');
  for (const [name, { ask }] of taking) assert.equal(await codeOf(ask(one, card, 'x'.repeat(101))), '18', name);
  for (const [name, { ask }] of taking.slice(0, 4)) assert.equal(await codeOf(ask(one, card, 'NEW-x')), '18', name);
});

for (const [name, { ask, holds }] of Object.entries(operations)) {
  describe(`calls to ${name}`, () => {
    test('of one moment are one statement, if they are for different vouchers and references', async () => {
      const [first, second] = (await bench.cards(one, 2)) as [Card, Card];
      const calls = [() => ask(one, first, `${name} 1`), () => ask(one, second, `${name} 2`)];
      assert.equal((await rowsOf(calls))[0], 2);
      const [third, fourth] = (await bench.cards(one, 2)) as [Card, Card];
      // The same reference of another merchant is another one.
      const theirs = [() => ask(one, third, `${name} 3`), () => ask(other, fourth, `${name} 3`)];
      assert.equal((await rowsOf(theirs))[0], 2);
      if (holds.includes('voucher'))
        assert.equal((await rowsOf([() => ask(one, third), () => ask(other, fourth)]))[0], 2);
    });

    for (const what of ['voucher', 'reference'] as const)
      test(`of one moment ${holds.includes(what) ? 'go one after the other' : 'go together'} if they are for one ${what}`, async () => {
        const cards = (await bench.cards(one, 2)) as [Card, Card];
        const [card, next] = what === 'voucher' ? [cards[0], cards[0]] : cards;
        const [reference, second] = what === 'voucher' ? [`${name} a`, `${name} b`] : [`${name} c`, `${name} c`];
        const [most] = await rowsOf([() => ask(one, card, reference), () => ask(one, next, second)]);
        assert.equal(most, holds.includes(what) ? 1 : 2);
      });

    test('of a merchant do not wait for hundreds of another', async () => {
      const unknown = (nth: number): Card => ({ ...UNKNOWN, code: String(100_000_000_000 + nth), serial: BigInt(nth) });
      const flood = Array.from({ length: 600 }, (_, nth) => () => ask(one, unknown(nth), `${name} ${nth} of many`));
      const card = await bench.card(other);
      await rowsOf([...flood, () => ask(other, card, `${name} of another`)]);
      const turn = sent.findIndex(({ merchants }) => merchants.includes(other.merchant.id));
      // Two statements are under way when it comes.
      assert.ok(turn >= 0 && turn <= 2, `in statement ${turn} of ${sent.length}`);
    });
  });
}
