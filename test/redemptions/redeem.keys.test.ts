import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createKey } from '../../src/api-keys/keys.ts';
import { generateWithin } from '../../src/batches/generate.ts';
import { actFor } from '../../src/merchants/merchants.ts';
import { correctRedemption, getRedemption } from '../../src/redemptions/correct.ts';
import { showTransaction } from '../../src/transactions/transactions.ts';
import { movementsOf } from '../../src/vouchers/show.ts';
import { A, DIALECTS, update } from '../support/dialects.ts';
import { asOperator, basic } from '../support/harness.ts';
import { type Till, tillsOfOneService } from '../support/till.ts';

/** The journal says which API key asked for each movement. */

const openTill = tillsOfOneService();

/** Two keys of one merchant, as merchants that send requests. */
async function twoKeys(till: Till) {
  const { merchant, testService } = till;
  const made = await createKey(asOperator(testService.service), merchant.id);
  const authorization = basic(made.keyId, made.secret);
  return [merchant, { ...merchant, ...made, authorization }] as const;
}

/** The movements of a voucher and the keys that asked for them, oldest first. */
async function keysOf({ testService: { service } }: Till, serialNumber: number) {
  const movements = await movementsOf(service, BigInt(serialNumber));
  for (const { transactionId, keyId } of movements)
    assert.equal((await showTransaction(service, transactionId ?? '')).keyId, keyId);
  return movements.map(({ what, keyId }) => [what, keyId]).reverse();
}

for (const dialect of DIALECTS) {
  describe(`the books of ${dialect.name}`, () => {
    test('name the key of each of two that a merchant calls with', async () => {
      const till = await openTill({ product: 'DEFAULT' });
      const { testService } = till;
      const [first, second] = await twoKeys(till);
      const [voucher] = (await testService.request(second, dialect.generate('order', 1, 25))).data.vouchers;
      for (const [key, amount, reference] of [
        [first, 1, 'one'],
        [second, 2, 'two'],
      ] as const)
        assert.equal(
          (await testService.request(key, dialect.redeem(voucher, amount, reference))).statusCode,
          '00',
        );
      // A repeat by another key is the same redemption, and stays that of the first.
      assert.equal((await testService.request(second, dialect.redeem(voucher, 1, 'one'))).replayed, true);
      const updated = await testService.request(first, update('two', 3));
      assert.equal(updated.statusCode, '00');
      assert.deepEqual(await keysOf(till, voucher.serialNumber), [
        ['ACTIVATION', second.keyId],
        ['REDEMPTION', first.keyId],
        ['REDEMPTION', second.keyId],
        ['REDEMPTION_REVERSAL', first.keyId],
        ['REDEMPTION', first.keyId],
      ]);
      // A till does not see it.
      const answers = [updated, await testService.request(first, dialect.lookup('one'))];
      for (const { body } of answers) assert.ok(!JSON.stringify(body).includes('key_'));
      await till.reconciles();
    });

    test('name the key that activates a voucher', async () => {
      const till = await openTill();
      const { testService } = till;
      const [, second] = await twoKeys(till);
      const voucher = await till.voucher(null);
      const { statusCode } = await testService.request(second, dialect.activate(voucher, 'sold'));
      assert.equal(statusCode, '00');
      assert.deepEqual(await keysOf(till, voucher.serialNumber), [['ACTIVATION', second.keyId]]);
    });
  });
}

test('the books name no key where the operator acts', async () => {
  const till = await openTill();
  const { service } = till.testService;
  const operator = { ...asOperator(service), actor: { ...asOperator(service).actor, reason: 'mistyped' } };
  const context = await actFor(service, till.merchant.id);
  assert.ok(context);
  await generateWithin(context, { reference: 'by the operator', quantity: 1, value: 25 }, operator);
  const request = A.download('by the operator');
  const [voucher] = (await till.done(request)).data.vouchers;
  const redeemed = await till.done(A.redeem(voucher, 10, 'sale'));
  await correctRedemption(operator, await getRedemption(operator, redeemed.data.transactionId), 500n);
  assert.deepEqual(await keysOf(till, voucher.serialNumber), [
    ['ACTIVATION', null],
    ['REDEMPTION', till.merchant.keyId],
    ['REDEMPTION_REVERSAL', null],
    ['REDEMPTION', null],
  ]);
  await till.reconciles();
});
