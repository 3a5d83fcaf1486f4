import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { A, DIALECTS, update } from '../support/dialects.ts';
import { Till, tillsOfOneService } from '../support/till.ts';

const openTill = tillsOfOneService();

for (const dialect of DIALECTS) {
  describe(`a lookup by ${dialect.name}`, () => {
    test('finds the redemption first, then the activation', async () => {
      const till = await openTill();
      const voucher = await till.voucher(null);
      const activation = await till.done(dialect.activate(voucher, 'both'));
      assert.deepEqual((await till.done(dialect.lookup('both'))).data, activation.data);
      const redemption = await till.done(A.redeem(voucher, 10, 'both'));
      const { data } = await till.done(dialect.lookup('both'));
      assert.equal(data.transactionId, redemption.data.transactionId);
      assert.equal(data.voucherCode, `${voucher.code.slice(0, 4)}****${voucher.code.slice(-4)}`);
    });

    test('finds the replacement of an updated redemption by the original reference only', async () => {
      const till = await openTill();
      await till.done(dialect.redeem(await till.voucher(25), 10, 'x'));
      const { newTransaction } = (await till.done(update('x', 7))).data;
      const { data } = await till.done(dialect.lookup('x'));
      assert.deepEqual([data.transactionId, data.amount], [newTransaction.transactionId, 7]);
      assert.equal(data.reference, 'NEW-x');
      await till.refused(dialect, dialect.notFound, dialect.lookup('NEW-x'));
      await till.refused(dialect, dialect.notFound, dialect.lookup('CANCEL-x'));
    });

    test('finds nothing after a full reversal', async () => {
      const till = await openTill();
      await till.done(dialect.redeem(await till.voucher(25), 10, 'x'));
      await till.done(update('x', 0));
      const { body } = await till.refused(dialect, dialect.notFound, dialect.lookup('x'));
      assert.equal(body.message, 'Transaction not found');
    });

    test('does not find batches, transactions of other merchants, or unknown references', async () => {
      const till = await openTill();
      const other = await Till.another(till.testService);
      const { data } = await till.done(dialect.generate('batch', 1, 25));
      await till.done(dialect.redeem(data.vouchers[0], 10, 'sale'));
      await till.refused(dialect, dialect.notFound, dialect.lookup('batch'));
      await till.refused(dialect, dialect.notFound, dialect.lookup('nobody'));
      await other.refused(dialect, dialect.notFound, dialect.lookup('sale'));
    });

    test('returns a reference exactly as it was sent, with any characters', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      for (const reference of [
        'a/b c?d#e%2F&f=g;h',
        '+',
        'é'.normalize('NFD'),
        '😀'.repeat(90),
        'schön 你好 🎁',
        "'; drop table x; --",
        'x'.repeat(100),
        '..',
        '{a,"b"}',
        'null',
      ]) {
        await till.done(dialect.redeem(voucher, 1, reference));
        // Two dots in a URL mean the folder above, and do not arrive as a reference.
        if (reference === '..') continue;
        assert.equal((await till.done(dialect.lookup(reference))).data.reference, reference);
      }
    });
  });
}
