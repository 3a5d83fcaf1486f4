import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { isRetryable } from '../../src/db/errors.ts';
import { redemptions } from '../support/redemptions.ts';
import { type Card, UNKNOWN, wrong } from '../support/statement.ts';

const { bench, rowsOf, outcomesOf, outcomeOf } = redemptions();
let one: Context;
let other: Context;

before(async () => {
  [one, other] = [await bench.merchant(), await bench.merchant('OWN')];
});

test('a call books each redemption once: the claim, the journal and the balance agree', async () => {
  const [first, second] = await bench.cards(one, 2, { value: 25 });
  const ids = [bench.id(), bench.id()] as const;
  const rows = await rowsOf([
    { by: one, card: first, amount: 101_000, reference: 'a1', id: ids[0] },
    { by: other, card: second, amount: 250_000, id: ids[1] },
  ]);
  assert.deepEqual(
    rows.map(({ outcome, id, occurred_at, amount_minor }) => [outcome, id, occurred_at, amount_minor]),
    [
      ['ok', ids[0], bench.now, 1010n],
      ['ok', ids[1], bench.now, 2500n],
    ],
  );
  const entries = await bench.query(
    `
      select j.id, j.kind, j.debit_account, a.kind as credited, a.merchant_id as to, j.amount_minor,
        j.currency, j.merchant_id, j.serial_number, j.reference, j.batch_id, j.original_id, j.occurred_at
      from journal j join accounts a on a.id = j.credit_account and a.currency = j.currency
      where j.id in ('${ids[0]}', '${ids[1]}') order by j.id`,
  );
  const common = { kind: 'REDEMPTION', credited: 'SETTLEMENT', currency: 'USD', batch_id: null };
  const rest = { original_id: null, occurred_at: bench.now };
  const entry = (id: string, by: Context, { serial }: Card, amount: bigint, reference: string | null) => ({
    ...{ id, ...common, debit_account: serial, to: by.merchant.id, amount_minor: amount },
    ...{ merchant_id: by.merchant.id, serial_number: serial, reference, ...rest },
  });
  assert.deepEqual(entries, [
    entry(ids[0], one, first, 1010n, 'a1'),
    entry(ids[1], other, second, 2500n, null),
  ]);
  assert.deepEqual(
    [await bench.ofCard(first, 'balance_minor'), await bench.ofCard(second, 'balance_minor')],
    ['1490', '0'],
  );
  const claims = await bench.query(
    `
      select merchant_id, operation, reference, serial_number, fingerprint from claims
      where id in ('${ids[0]}', '${ids[1]}')`,
  );
  const [claimed, fingerprint] = [first.serial, '101000'];
  assert.deepEqual(claims, [
    {
      merchant_id: one.merchant.id,
      operation: 'redeem',
      reference: 'a1',
      serial_number: claimed,
      fingerprint,
    },
  ]);
});

test('a call with the same voucher or reference twice fails as a whole', async () => {
  const [card, next] = await bench.cards(one, 2, { value: 25 });
  const request = (each: Card, reference?: string) => ({
    by: one,
    card: each,
    amount: 10_000,
    ...(reference && { reference }),
  });
  const twice = /rows of vouchers were written instead of/;
  await assert.rejects(outcomesOf([request(card), request(next), request(card)]), twice);
  await assert.rejects(outcomesOf([request(wrong(card)), request(card)]), twice);
  await assert.rejects(outcomesOf([request(card, 'twice'), request(next, 'twice')]), {
    constraint: 'claims_pkey',
  });
  for (const each of [card, next])
    assert.deepEqual(
      [await bench.ofCard(each, 'balance_minor'), await bench.guardOf(each)],
      ['2500', '0 open'],
    );
  assert.deepEqual(
    await bench.query(`select from journal where serial_number = ${card.serial} and kind = 'REDEMPTION'`),
    [],
  );
});

describe('a reference', () => {
  test('returns the first answer for the same request, and is refused for another one', async () => {
    const [card, next] = await bench.cards(one, 2, { value: 25 });
    const [first] = await rowsOf([{ by: one, card, amount: 100_000, reference: 'ref' }]);
    const later = new Date(bench.now.getTime() + 1000);
    const [again] = await rowsOf([{ by: one, card, amount: 100_000, reference: 'ref' }], later);
    assert.deepEqual(
      [again?.outcome, again?.id, again?.occurred_at, again?.amount_minor],
      ['replay', first?.id, bench.now, 1000n],
    );
    assert.equal(await outcomeOf(one, card, 100_100, 'ref'), '94');
    assert.equal(await outcomeOf(one, next, 100_000, 'ref'), '94');
    assert.equal(await outcomeOf(one, UNKNOWN, 100_000, 'ref'), '94');
    // Finer than the currency of the voucher, but not than every currency.
    assert.equal(await outcomeOf(one, card, 100_050, 'ref'), '94');
    assert.equal(await outcomeOf(other, card, 100_000, 'ref'), 'ok');
    assert.equal(await outcomeOf(one, wrong(card), 100_000, 'ref'), '55');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '500');
  });

  test('used by another operation is free', async () => {
    const card = await bench.card(one, 25);
    await bench.query(`insert into claims (id, merchant_id, operation, reference, fingerprint)
      values (gen_random_uuid(), ${one.merchant.id}, 'activate', 'of an activation', '10000')`);
    assert.equal(await outcomeOf(one, card, 10_000, 'of an activation'), 'ok');
  });

  test('used by the same request while a copy waits makes the copy a replay', async () => {
    const card = await bench.card(one, 25);
    const id = bench.id();
    const first = `
      select * from redeem(0, '{${one.merchant.id}}', '{${one.keyId}}', '{${card.codeKey}}', '{${card.pinKey}}',
      '{10000}', '{copied}', '{${id}}', false, null, '${bench.now.toISOString()}')`;
    const copy = () => rowsOf([{ by: one, card, amount: 10_000, reference: 'copied' }]);
    const [copied] = await bench.during([first], copy);
    assert.deepEqual([copied?.outcome, copied?.id], ['replay', id]);
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2400');
  });

  test('used by another request while a call waits fails the call; its retry gets 94', async () => {
    const [card, next] = await bench.cards(one, 2, { value: 25 });
    const first = `
      select * from redeem(0, '{${one.merchant.id}}', '{${one.keyId}}', '{${card.codeKey}}', '{${card.pinKey}}',
      '{10000}', '{contended}', '{${bench.id()}}', false, null, '${bench.now.toISOString()}')`;
    const late = () =>
      outcomeOf(one, next, 10_000, 'contended').catch((error: unknown) => {
        assert.ok(isRetryable(error), String(error));
        return 'sent again';
      });
    assert.equal(await bench.during([first], late), 'sent again');
    assert.equal(await late(), '94');
    assert.equal(await bench.ofCard(next, 'balance_minor'), '2500');
  });
});

describe('wrong PINs', () => {
  test('are counted, and lock the voucher at the fifth, the tenth and the fifteenth', async () => {
    const card = await bench.card(one, 25);
    await bench.countsWrongPins(card, () => outcomeOf(one, wrong(card), 10_000));
    assert.equal(await outcomeOf(one, card, 10_000), '75');
    assert.equal(await bench.ofCard(card, 'balance_minor'), '2500');
  });

  test('no longer count after the right one, even if the redemption is declined', async () => {
    const card = await bench.card(one, 25);
    await outcomeOf(one, card, 10_000, 'guarded');
    const guarded = async (amount: number, reference?: string, wrongPins = 3) => {
      await bench.setCard(card, `wrong_pins = ${wrongPins}, pin_locked_until = '2030-01-15T07:00Z'`);
      const place = await bench.placeOf(card);
      const outcome = await outcomeOf(one, card, amount, reference);
      return [outcome, await bench.guardOf(card), (await bench.placeOf(card)) !== place];
    };
    assert.deepEqual(await guarded(10_000), ['ok', '0 open', true]);
    assert.deepEqual(await guarded(10_000_000), ['51', '0 open', true]);
    assert.deepEqual(await guarded(10_000_000, undefined, 1), ['51', '0 open', true]);
    assert.deepEqual(await guarded(10), ['13', '0 open', true]);
    assert.deepEqual(await guarded(10_000, 'guarded'), ['replay', '0 open', true]);
    // In these cases the PIN is not checked.
    assert.deepEqual(await guarded(20_000, 'guarded'), ['94', '3 -60', false]);
    await bench.setCard(card, "wrong_pins = 5, pin_locked_until = '2030-01-15T09:00Z'");
    assert.equal(await outcomeOf(one, card, 10_000), '75');
    assert.equal(await bench.guardOf(card), '5 60');
    // Nothing is written if there is no count to reset.
    await bench.setCard(card, 'wrong_pins = 0, pin_locked_until = null');
    const place = await bench.placeOf(card);
    assert.equal(await outcomeOf(one, card, 10_000_000), '51');
    assert.equal(await bench.placeOf(card), place);
  });

  test('are counted on the voucher as it is once the call holds its lock', async () => {
    const card = await bench.card(one, 25);
    const guess = () => outcomeOf(one, wrong(card), 10_000, 'guess');
    assert.equal(await bench.behind(card, 'balance_minor = 5', guess), '55');
    assert.equal(await bench.guardOf(card), '1 open');
  });
});

test('a call that waited for a voucher decides on its new state, with and without a reference', async () => {
  for (const [outcome, what] of [
    ['42', 'balance_minor = 0'],
    ['51', 'balance_minor = 5'],
    ['44', "closed = 'CANCELED', balance_minor = 0"],
    ['43', 'blocked_at = now()'],
    ['54', "expires_at = '2029-01-01'"],
    ['75', "pin_locked_until = '2030-01-15T08:01Z'"],
    ['14', `code_key = '${'9'.repeat(32)}'`],
    ['ok', 'balance_minor = 2000'],
  ] as const) {
    for (const reference of [undefined, `raced ${what}`]) {
      const card = await bench.card(one, 25);
      assert.equal(
        await bench.behind(card, what, () => outcomeOf(one, card, 10_000, reference)),
        outcome,
        what,
      );
      if (outcome === 'ok') assert.equal(await bench.ofCard(card, 'balance_minor'), '1900');
      // Frees the key for the next round.
      if (outcome === '14') await bench.setCard(card, `code_key = '${card.codeKey}'`);
    }
  }
});

test('a redemption is announced to the endpoints that subscribe to it, and to no other', async () => {
  const { merchant, isAnnounced } = await bench.subscribed('voucher.redeemed');
  const card = await bench.card(merchant, 25);
  const id = bench.id();
  assert.deepEqual(await outcomesOf([{ by: merchant, card, amount: 10_000, id }]), ['ok']);
  await outcomeOf(merchant, card, 10_000_000);
  await isAnnounced(id);
});
