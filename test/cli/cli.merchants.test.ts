import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Operator } from '../support/operator.ts';

const operator = Operator.ofTests();

test('scrip merchant create makes a merchant that can call at once', async () => {
  const made = await operator.json`merchant create --name Kiosk --permit update-redemption --float 99.95`;
  assert.deepEqual(Object.keys(made), ['id', 'name', 'keyId', 'secret']);
  const { merchant } = await operator.enter(made);
  assert.equal(merchant.id, Number(made.id));
  assert.ok(merchant.permissions.has('update-redemption'));
  const float = { merchantId: made.id, merchant: 'Kiosk', usePerDay: 0, daysLeft: null };
  assert.deepEqual(await operator.json`float show --merchant ${made.id}`, [
    { ...float, currency: 'USD', balance: 99.95, low: 9.99 },
  ]);
  const listed = (await operator.json`merchant list`).find(({ id }: { id: unknown }) => id === made.id);
  assert.equal(listed.name, 'Kiosk');
  const shown = await operator.run`merchant show ${made.id}`;
  assert.match(shown.out, /\n\nfloats:\n/, 'an empty line before the table');
});

test('scrip merchant create takes names that JavaScript knows', async () => {
  for (const name of ['constructor', '__proto__']) {
    const made = await operator.json`merchant create --name ${name}`;
    assert.equal(made.name, name);
  }
});

test('scrip merchant create with a float of 0 leaves it empty', async () => {
  for (const amount of ['0', '0.00']) {
    const { id } = await operator.json`merchant create --name Later --float ${amount}`;
    assert.deepEqual(await operator.json`float show --merchant ${id}`, []);
  }
});
