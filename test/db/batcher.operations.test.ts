import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type Context, createService } from '../../src/context.ts';
import type { HotStatement } from '../../src/db/sql.ts';
import { findTransaction } from '../../src/ledger/transactions.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { findUpdate, updateRedemption } from '../../src/redemptions/update.ts';
import { Refusal } from '../../src/refusal.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { balance } from '../../src/vouchers/balance.ts';
import { Bench, type Card, UNKNOWN } from '../support/statement.ts';

/**
 * For each operation of the hot path: which requests share a call to the database, what becomes of those
 * for the same voucher or reference, and that a request which cannot be answered fails alone.
 */

const bench = Bench.ofTests();
let one: Context;
let other: Context;
/** The merchants of each call, without the second calls for requests that the first left open. */
let sent: { readonly name: string; readonly merchants: readonly number[] }[] = [];

before(async () => {
  [one, other] = [await bench.merchant(), await bench.merchant()];
  const { service } = one;
  const hot = <Row>(statement: HotStatement, values: readonly unknown[], bucket?: number) => {
    const merchants = String(values[1]).slice(1, -1).split(',').map(Number);
    if (sent[0] === undefined || sent[0].name === statement.name)
      sent.push({ name: statement.name, merchants });
    return service.db.hot<Row>(statement, values, bucket);
  };
  const seen = createService({ ...service, db: { ...service.db, hot } });
  [one, other] = [
    { ...one, service: seen },
    { ...other, service: seen },
  ];
});

/** A call for a voucher under a reference, where it has one. */
type Ask = (by: Context, card: Card, reference?: string) => Promise<unknown>;

/** The operations, and whether their calls hold a voucher or a reference exclusively. */
const operations: Record<
  string,
  { readonly ask: Ask; readonly holds: readonly ('voucher' | 'reference')[] }
> = {
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
  update: {
    ask: (by, _, reference = '-') => updateRedemption(by, { reference, amountUsed: 0 }),
    holds: ['reference'],
  },
  'find an update': { ask: (by, _, reference = '-') => findUpdate(by, reference), holds: [] },
  'find a transaction': { ask: (by, _, reference = '-') => findTransaction(by, reference), holds: [] },
};

/** Sends requests at one moment. @returns how many of them each call held */
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
  test('decides on the new state of the voucher', async () => {
    const [spent, closed] = await bench.cards(one, 2, { value: 25 });
    const raced = { amount: 1, reference: 'raced' };
    assert.equal(
      await bench.behind(spent, 'balance_minor = 0', () => codeOf(redeem(one, { ...spent, ...raced }))),
      '42',
    );
    await redeem(one, { ...closed, amount: 1, reference: 'to update' });
    const update = () => codeOf(updateRedemption(one, { reference: 'to update', amountUsed: 0 }));
    assert.equal(await bench.behind(closed, "closed = 'CANCELED', balance_minor = 0", update), '44');
    const open = await bench.card(one);
    const opening = () => codeOf(activate(one, { voucher: open, reference: 'raced' }));
    assert.equal(await bench.behind(open, 'blocked_at = now()', opening), '43');
    await bench.setCard(spent, 'wrong_pins = 1');
    const { balance: left } = await bench.behind(spent, 'balance_minor = 7', () => balance(one, spent));
    assert.equal(left.minor, 7n);
  });
});

test('the accounts of a merchant in a currency are created when they are first needed', async () => {
  await bench.product('DINAR', 'KWD', 3);
  const [card] = await bench.cards(await bench.merchant('DINAR'), 1, { value: 5 });
  const [bare] = await bench.cards(await bench.merchant('DINAR'), 1);
  const redeemed = redeem(one, { ...card, amount: 1.234 });
  assert.deepEqual((await redeemed).transaction.amount, { minor: 1234n, decimals: 3 });
  assert.equal(await codeOf(activate(other, { voucher: bare, value: 1 })), '50');
});

test('every operation that takes a reference declines a malformed one', async () => {
  const card = await bench.card(one, 25);
  const taking = Object.entries(operations).filter(([name]) => name !== 'balance');
  for (const [name, { ask }] of taking)
    assert.equal(await codeOf(ask(one, card, 'x'.repeat(101))), '18', name);
  for (const [name, { ask }] of taking.slice(0, 4))
    assert.equal(await codeOf(ask(one, card, 'NEW-x')), '18', name);
});

test('concurrent activations by code and by serial number activate a voucher once, and no other fails', async () => {
  const cards = await bench.cards(one, 8);
  const bySerial = (card: Card, reference?: string) =>
    codeOf(activate(one, { voucher: { serialNumber: Number(card.serial) }, reference }));
  const byCode = (card: Card, reference?: string) => codeOf(activate(one, { voucher: card, reference }));
  const [card, copied, ...neighbors] = cards as [Card, Card, ...Card[]];
  const [named, bySerialNamed, copy, again, ...others] = await Promise.all([
    byCode(card, 'by code'),
    bySerial(card, 'by serial number'),
    byCode(copied, 'one activation'),
    bySerial(copied, 'one activation'),
    ...neighbors.flatMap((each, index) => (index % 2 ? [byCode(each)] : [bySerial(each)])),
  ]);
  assert.deepEqual([named, bySerialNamed].sort(), ['41', 'ok']);
  assert.deepEqual([copy, again], ['ok', 'ok']);
  assert.deepEqual(others, Array(neighbors.length).fill('ok'));
});

describe('a voucher that cannot be opened', () => {
  test('fails its own request only, and the others of the call are answered', async () => {
    const cards = await bench.cards(one, 4, { value: 25 });
    const inactive = await bench.cards(one, 4);
    for (const [index, card] of cards.entries()) {
      for (const kind of ['to update', 'updated', 'kept'])
        await redeem(one, { ...card, amount: 1, reference: `${kind} ${index}` });
      await updateRedemption(one, { reference: `updated ${index}`, amountUsed: 0.5 });
    }
    for (const card of [cards[1] as Card, inactive[1] as Card])
      await bench.setCard(card, `sealed = 'rotten'`);
    const requests: Record<string, (index: number) => Promise<unknown>> = {
      'activate by serial number': (index) =>
        activate(one, {
          voucher: { serialNumber: Number(inactive[index]?.serial) },
          reference: `opened ${index}`,
        }),
      update: (index) => updateRedemption(one, { reference: `to update ${index}`, amountUsed: 0 }),
      'find an update': (index) => findUpdate(one, `updated ${index}`),
      'find a transaction': (index) => findTransaction(one, `kept ${index}`),
    };
    for (const [name, request] of Object.entries(requests)) {
      sent = [];
      const outcomes = await Promise.allSettled([0, 1, 2, 3].map(request));
      assert.equal(sent[0]?.merchants.length, 4, name);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
        name,
      );
    }
    // The committed activation is replayed once the voucher can be opened again.
    const { keys } = one.service;
    const { serial, code, pin } = inactive[1] as Card;
    await bench.setCard(inactive[1] as Card, `sealed = '\\x${keys.seal(serial, code, pin).toString('hex')}'`);
    const retried = await activate(one, { voucher: { serialNumber: Number(serial) }, reference: 'opened 1' });
    assert.equal(retried.replayed, true);
  });
});

for (const [name, { ask, holds }] of Object.entries(operations)) {
  describe(`requests to ${name}`, () => {
    test('for different vouchers and references share a call', async () => {
      const [first, second] = await bench.cards(one, 2);
      const calls = [() => ask(one, first, `${name} 1`), () => ask(one, second, `${name} 2`)];
      assert.equal((await rowsOf(calls))[0], 2);
      const [third, fourth] = await bench.cards(one, 2);
      // The same reference of another merchant is another one.
      const theirs = [() => ask(one, third, `${name} 3`), () => ask(other, fourth, `${name} 3`)];
      assert.equal((await rowsOf(theirs))[0], 2);
      if (holds.includes('voucher'))
        assert.equal((await rowsOf([() => ask(one, third), () => ask(other, fourth)]))[0], 2);
    });

    for (const what of ['voucher', 'reference'] as const)
      test(`for the same ${what} ${holds.includes(what) ? 'go one after the other' : 'share a call'}`, async () => {
        const cards = await bench.cards(one, 2);
        const [card, next] = what === 'voucher' ? [cards[0], cards[0]] : cards;
        const [reference, second] =
          what === 'voucher' ? [`${name} a`, `${name} b`] : [`${name} c`, `${name} c`];
        const [most] = await rowsOf([() => ask(one, card, reference), () => ask(one, next, second)]);
        assert.equal(most, holds.includes(what) ? 1 : 2);
      });

    test('of one merchant do not wait for hundreds of another', async () => {
      const unknown = (nth: number): Card => ({
        ...UNKNOWN,
        code: String(100_000_000_000 + nth),
        serial: BigInt(nth),
      });
      const flood = Array.from(
        { length: 600 },
        (_, nth) => () => ask(one, unknown(nth), `${name} ${nth} of many`),
      );
      const card = await bench.card(other);
      await rowsOf([...flood, () => ask(other, card, `${name} of another`)]);
      const turn = sent.findIndex(({ merchants }) => merchants.includes(other.merchant.id));
      // Two calls are under way when it arrives.
      assert.ok(turn >= 0 && turn <= 2, `in call ${turn} of ${sent.length}`);
    });
  });
}
