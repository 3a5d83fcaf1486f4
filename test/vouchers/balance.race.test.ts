import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { inForce } from '../../src/vouchers/balance.ts';
import { DIALECTS, update } from '../support/dialects.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';
import { Till, withWrongPin } from '../support/till.ts';

for (const dialect of DIALECTS) {
  test(`a balance by ${dialect.name} that waited for a redemption agrees with its own history`, async (t) => {
    const till = await Till.open(t);
    const other = await till.elsewhere(t);
    const voucher = await till.voucher(25);
    // After a wrong PIN the voucher is read under its lock.
    await till.refused(dialect, '55', dialect.balance(withWrongPin(voucher)));
    const { url } = till.testService;
    const owner = await ownerOf(t, url);
    await owner.query(sql`begin`);
    await owner.query(
      sql`select from scrip.vouchers where serial_number = ${voucher.serialNumber} for update`,
    );
    const redeemed = other.done(dialect.redeem(voucher, 10, 'sale'));
    await waitForLocks(url, 1);
    const balance = till.done(dialect.balance(voucher));
    await waitForLocks(url, 2);
    await owner.query(sql`commit`);
    await redeemed;
    const { data } = await balance;
    const spent = data.transactions
      .filter(({ transactionType }: { transactionType: string }) => transactionType === 'REDEMPTION')
      .reduce((sum: number, { amount }: { amount: number }) => sum + amount, 0);
    assert.equal(data.balance, 25 - spent);
  });
}

test('a balance with a long history agrees with it while redemptions go on', async (t) => {
  const till = await Till.open(t);
  const [dialect] = DIALECTS;
  const voucher = await till.voucher(100);
  // Each leaves three rows, one of them in force.
  for (let index = 0; index < 25; index++) {
    await till.done(dialect.redeem(voucher, 2, `early-${index}`));
    await till.done(update(`early-${index}`, 1));
  }
  let isDone = false;
  const redemptions = (async () => {
    for (let index = 0; index < 20; index++) await till.done(dialect.redeem(voucher, 1, `late-${index}`));
  })().finally(() => {
    isDone = true;
  });
  const balances = Array.from({ length: 4 }, async () => {
    while (!isDone) {
      const { data } = await till.done(dialect.balance(voucher));
      const [activation, ...redeemed] = data.transactions.map(({ amount }: { amount: number }) => amount);
      assert.equal(
        data.balance,
        redeemed.reduce((left: number, amount: number) => left - amount, activation),
      );
    }
  });
  await Promise.all([redemptions, ...balances]);
});

test('a reversed redemption is not in force, even if its id is greater than that of the reversal', () => {
  const activation = ['1', 'ACTIVATION', 25, 'then', null, null] as const;
  const redemption = (id: string) => [id, 'REDEMPTION', 10, 'then', 'x', null] as const;
  const reversal = (id: string, of: string) =>
    [id, 'REDEMPTION_REVERSAL', 10, 'then', 'CANCEL-x', of] as const;
  const left = [['1', 'ACTIVATION', 25, 'then', null, null]];
  assert.deepEqual(inForce([[...reversal('3', '2')], [...redemption('2')], [...activation]]), left);
  assert.deepEqual(inForce([[...redemption('3')], [...reversal('2', '3')], [...activation]]), left);
});
