import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Operator } from '../support/operator.ts';
import { typed } from '../support/scrip.ts';

const operator = Operator.ofTests();

describe('scrip merchant', () => {
  test('create makes a merchant that can call at once', async () => {
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

  test('create with a float of 0 leaves it empty', async () => {
    for (const amount of ['0', '0.00']) {
      const { id } = await operator.json`merchant create --name Later --float ${amount}`;
      assert.deepEqual(await operator.json`float show --merchant ${id}`, []);
    }
  });

  test('permit, forbid, suspend, resume and set change a merchant by its id', async () => {
    const { id } = await operator.json`merchant create --name Changing`;
    for (const change of [
      ['permit', id, 'update-redemption'],
      ['forbid', id, 'generate'],
      ['suspend', id],
      ['set', id, '--opaque'],
    ]) {
      assert.equal((await operator.run('merchant', ...change)).status, 0);
    }
    const changed = await operator.json`merchant show ${id}`;
    assert.deepEqual([...changed.permissions].sort(), [
      'activate',
      'balance',
      'download',
      'redeem',
      'update-redemption',
    ]);
    assert.ok(changed.suspendedAt);
    assert.equal(changed.opaque, true);
    assert.equal((await operator.run`merchant resume ${id}`).status, 0);
    assert.equal((await operator.json`merchant show ${id}`).suspendedAt, null);
  });

  test('reports an error in one line, and creates nothing', async () => {
    const before = await operator.json`merchant list`;
    await Promise.all([
      operator.fails(/decimals/, ...typed`merchant create --name Wrong --float 1.005`),
      operator.fails(/--permit must be one of/, ...typed`merchant create --name Wrong --permit everything`),
      operator.fails(/ISO 4217/, ...typed`merchant create --name Wrong --float 1 --currency ZZZ`),
      operator.fails(/no merchant 999999/, ...typed`merchant suspend 999999`),
      operator.fails(/the id has the wrong form/, ...typed`merchant show kiosk`),
      operator.fails(/required option '--name/, ...typed`merchant create`),
    ]);
    assert.deepEqual(await operator.json`merchant list`, before);
  });
});

describe('scrip float and product', () => {
  test('top up a float exactly, in each currency', async () => {
    const { id } = await operator.json`merchant create --name Prepaid`;
    await operator.json`float top-up --merchant ${id} --amount 0.10`;
    await operator.json`float top-up --merchant ${id} --amount 0.20`;
    await operator.json`float top-up --merchant ${id} --amount 1.005 --currency KWD`;
    const float = { merchantId: id, merchant: 'Prepaid', usePerDay: 0, daysLeft: null };
    assert.deepEqual(await operator.json`float show --merchant ${id}`, [
      { ...float, currency: 'KWD', balance: 1.005, low: 0.1 },
      { ...float, currency: 'USD', balance: 0.3, low: 0.03 },
    ]);
    await Promise.all([
      operator.fails(
        /JPY has 0 decimals/,
        ...typed`float top-up --merchant ${id} --amount 0.5 --currency JPY`,
      ),
      operator.fails(/no merchant 999999/, ...typed`float top-up --merchant 999999 --amount 1`),
    ]);
  });

  test('create a product with its bounds, and take it off sale', async () => {
    const bounds = typed`--min-value 5 --max-value 50.5 --max-quantity 5000000 --validity-days 30`;
    const terms = typed`--activation on-activation --scope issuer --currency EUR`;
    const made = await operator.json`product create --code GIFT --name ${'Gift card'} ${terms} ${bounds}`;
    assert.equal(made.code, 'GIFT');
    assert.deepEqual(
      [made.minValue, made.maxValue, made.maxQuantity, made.validityDays],
      [5, 50.5, 5_000_000, 30],
    );
    assert.deepEqual(
      [made.activation, made.scope, made.currency, made.onSale],
      ['on-activation', 'issuer', 'EUR', true],
    );
    await Promise.all([
      operator.fails(/GIFT/, ...typed`product create --code GIFT --name Again`),
      operator.fails(/5000000/, ...typed`product create --code MORE --name More --max-quantity 5000001`),
    ]);
    assert.equal((await operator.run`product off-sale GIFT`).status, 0);
    assert.equal((await operator.json`product show GIFT`).onSale, false);
    const codes = (await operator.json`product list`).map(
      ({ code, onSale }: { code: string; onSale: boolean }) => [code, onSale],
    );
    assert.deepEqual(codes, [
      ['DEFAULT', true],
      ['GIFT', false],
    ]);
  });
});
