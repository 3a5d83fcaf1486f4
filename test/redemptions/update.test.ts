import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Transaction, UpdateData } from '../../src/http/variant-a.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { movementsOf, showVoucher } from '../../src/vouchers/show.ts';
import { A, type ApiRequest, B, DIALECTS, update, updateDetails, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { pick, Till, tillsOfOneService } from '../support/till.ts';

const openTill = tillsOfOneService();

for (const dialect of DIALECTS) {
  describe(`the update of a redemption by ${dialect.name}`, () => {
    test('cancels, reverses and books again, and the details show the same', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      const original = await till.done(dialect.redeem(voucher, 10, 'sale'));
      const { data } = await till.done(update('sale', 24.5));
      assert.equal(data.originalTransaction.transactionId, original.data.transactionId);
      assert.deepEqual(pick(data.transactions, 'transactionType', 'amount', 'reference', 'refundStatus'), [
        ['REDEMPTION', 10, 'sale', 'CANCELLED'],
        ['REDEMPTION_REVERSAL', -10, 'CANCEL-sale', null],
        ['REDEMPTION', 24.5, 'NEW-sale', 'NEW'],
      ]);
      for (const [note] of pick(data.transactions, 'note')) assert.equal(typeof note, 'string');
      assert.deepEqual(Object.keys(data), Object.keys(UpdateData.properties));
      for (const each of data.transactions)
        assert.deepEqual(Object.keys(each), Object.keys(Transaction.properties));
      const { originalTransaction, cancellationTransaction, newTransaction, transactions, summary } = data;
      assert.deepEqual(transactions, [originalTransaction, cancellationTransaction, newTransaction]);
      assert.deepEqual(summary, { originalAmount: 10, newAmount: 24.5, reference: 'sale' });
      assert.deepEqual((await till.done(updateDetails('sale'))).data, data);
      assert.equal(await till.balanceOf(voucher), 0.5);
      await till.reconciles();
    });

    test('reverses fully with amount 0 or no amount, and leaves no transaction in force', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      for (const [reference, amountUsed] of [
        ['zero', 0],
        ['nothing said', undefined],
      ] as const) {
        await till.done(dialect.redeem(voucher, 25, reference));
        const { data } = await till.done(update(reference, amountUsed));
        assert.equal(data.newTransaction, null);
        assert.equal(data.transactions.length, 2);
        assert.deepEqual(data.summary, { originalAmount: 25, newAmount: 0, reference });
        assert.deepEqual((await till.done(updateDetails(reference))).data, data);
        await till.refused(dialect, dialect.notFound, dialect.lookup(reference));
        // The voucher that was redeemed is active again.
        assert.equal(await till.balanceOf(voucher), 25);
      }
      await till.reconciles();
    });

    test('is booked once: another one, equal or not, is refused with the data of the first', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      await till.done(dialect.redeem(voucher, 10, 'sale'));
      const first = await till.done(update('sale', 7));
      for (const amountUsed of [7, 0, 1_000, undefined]) {
        const again = await till.refused(A, '58', update('sale', amountUsed));
        assert.deepEqual([again.body.message, again.data], ['Redemption already updated', first.data]);
      }
      assert.equal(await till.balanceOf(voucher), 18);
    });

    test('leaves a repeated redemption a replay', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      const first = await till.done(dialect.redeem(voucher, 10, 'sale'));
      await till.done(update('sale', 7));
      const again = await till.done(dialect.redeem(voucher, 10, 'sale'));
      assert.deepEqual([again.replayed, again.data.transactionId], [true, first.data.transactionId]);
      assert.equal(await till.balanceOf(voucher), 18);
    });

    test('returns money to the last replacement, whose history adds up to its balance', async () => {
      const till = await openTill();
      const { service } = till.testService;
      const { data } = await till.done(dialect.generate('batch', 1, 25));
      const [old] = data.vouchers as [Voucher];
      for (const what of ['less', 'none', 'same']) await till.done(dialect.redeem(old, 5, what));
      const chain = [BigInt(old.serialNumber)];
      for (let turn = 0; turn < 2; turn++)
        chain.push(await replaceVoucher(asOperator(service), chain.at(-1) ?? 0n));
      const [last] = (await till.done(dialect.download('batch'))).data.vouchers as [Voucher];
      assert.notEqual(last.serialNumber, old.serialNumber);
      await till.done(dialect.redeem(last, 1, 'of the new voucher'));
      await till.refused(A, '44', update('less', 5.01));
      for (const [what, amountUsed] of [
        ['less', 4.99],
        ['none', 0],
        ['same', 5],
      ] as const) {
        const updated = (await till.done(update(what, amountUsed))).data;
        assert.equal(updated.summary.newAmount, amountUsed);
        assert.deepEqual((await till.done(updateDetails(what))).data, updated);
        await till.refused(A, '58', update(what, 0));
      }
      const shown = (await till.done(dialect.balance(last))).data;
      const [activation, sale, ...more] = shown.transactions;
      assert.deepEqual(
        [activation.transactionType, activation.amount, activation.reference],
        ['ACTIVATION', 15.01, ''],
      );
      assert.deepEqual([sale.transactionType, sale.amount, more], ['REDEMPTION', 1, []]);
      assert.deepEqual([shown.balance, shown.usableAmount], [14.01, 14.01]);
      const { value } = (await till.done(A.balance(last))).data;
      assert.equal(value, 15.01);
      assert.equal((await till.done(dialect.balance(old))).data.usableAmount, 0);
      for (const serialNumber of chain) {
        const { balance } = await showVoucher(service, serialNumber);
        const movements = await movementsOf(service, serialNumber);
        const minor = movements.reduce((sum, { amount }) => sum + BigInt(amount ?? 0), 0n);
        assert.equal(minor, balance, `the movements of ${serialNumber}`);
      }
      await till.reconciles();
    });

    test('is permitted only to the merchant that redeemed, and only for a redemption', async () => {
      const till = await openTill();
      const other = await Till.another(till.testService);
      const inactive = await till.voucher(null);
      await till.done(dialect.redeem(await till.voucher(25), 10, 'sale'));
      await till.done(dialect.activate(inactive, 'activation'));
      const refused = await other.refused(A, '60', update('sale', 5));
      assert.equal(refused.body.message, 'Redemption not found');
      await other.refused(A, '60', updateDetails('sale'));
      await till.refused(A, '60', update('activation', 5));
      const details = await till.refused(A, '60', updateDetails('sale'));
      assert.equal(details.body.message, 'Redemption update not found');
    });
  });
}

describe('an update', () => {
  test('accepts the transactionId in place of a reference', async () => {
    const till = await openTill();
    const { code, pin } = await till.voucher(25);
    const request: ApiRequest = {
      method: 'POST',
      path: '/merchant-client/v2/redeem',
      body: { code, pin, amount: 10 },
    };
    const { transactionId } = (await till.done(request)).data;
    const { data } = await till.done(update(transactionId, 4));
    assert.deepEqual(pick(data.transactions, 'reference').flat(), [null, null, null]);
    assert.equal(data.summary.reference, transactionId);
    assert.deepEqual((await till.done(updateDetails(transactionId))).data, data);
    for (const dialect of DIALECTS) {
      const found = await till.done(dialect.lookup(transactionId));
      assert.equal(found.data.transactionId, data.newTransaction.transactionId);
    }
  });

  test('refuses an invalid amount and a reserved reference', async () => {
    const till = await openTill();
    await till.done(B.redeem(await till.voucher(25), 10, 'sale'));
    for (const amountUsed of [-0.01, 1.001, 1e300]) await till.refused(A, '13', update('sale', amountUsed));
    await till.refused(A, '18', update('NEW-sale', 1));
    await till.refused(A, '18', update('', 1));
    const text = await till.refused(A, '30', {
      ...update('sale'),
      body: { reference: 'sale', amountUsed: '1' },
    });
    assert.deepEqual(
      text.body.errors.map(({ field }: { field: string }) => field),
      ['amountUsed'],
    );
    await till.refused(A, '60', updateDetails('sale'));
  });

  test('needs a permission of its own', async () => {
    const till = await openTill({ permit: [] });
    const voucher = await till.voucher(25);
    await till.done(A.redeem(voucher, 10, 'sale'));
    const refused = await till.refused(A, '03', update('sale', 5));
    assert.deepEqual([refused.status, refused.body.message], [403, 'Access denied']);
    assert.equal(await till.balanceOf(voucher), 15);
  });
});
