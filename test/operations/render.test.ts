import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { ENTRY } from '../../src/figure.ts';
import { rendered } from '../../src/operation.ts';
import { Count, Money, Nullable, Numbered, Text } from '../../src/schema.ts';

const Line = Type.Object({ amount: Money(ENTRY), note: Text });
const Account = Type.Object({
  currency: Text,
  balance: Money(ENTRY),
  limit: Nullable(Money(ENTRY)),
  lines: Type.Array(Line),
});

test('amounts are rendered in the currency beside them, or around them', () => {
  const account = { currency: 'JPY', balance: 12n, limit: null, lines: [{ amount: -5n, note: 'x' }] };
  assert.deepEqual(rendered(Account, account), {
    ...account,
    balance: 12,
    lines: [{ amount: -5, note: 'x' }],
  });
  const { balance, lines } = rendered(Account, { ...account, currency: 'KWD' });
  assert.deepEqual([balance, lines], [0.012, [{ amount: -0.005, note: 'x' }]]);
});

test('values without money stay what they are, and fields that the schema does not have are left out', () => {
  const when = new Date();
  assert.deepEqual(rendered(Type.Object({ when: Text }), { when, id: 1 } as never), { when });
  const list = [1n];
  assert.equal(rendered(Type.Unsafe({}), list), list);
  assert.deepEqual(rendered(Line, { amount: 2.5, note: 'in major units already' } as never), {
    amount: 2.5,
    note: 'in major units already',
  });
});

test('an id that is a number is rendered as text', () => {
  const Merchant = Type.Object({ id: Numbered(Text), owner: Nullable(Numbered(Text)), count: Count });
  const merchant = { id: 7, owner: 8, count: 9 };
  assert.deepEqual(rendered(Merchant, merchant), { id: '7', owner: '8', count: 9 } as never);
  assert.equal(rendered(Merchant, { ...merchant, owner: null }).owner, null);
});

test('an amount without a currency is a bug', () => {
  assert.throws(() => rendered(Line, { amount: 5n, note: '' }), /no currency/);
});
