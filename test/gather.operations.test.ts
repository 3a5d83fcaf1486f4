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
