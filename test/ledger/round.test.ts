import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { DIALECTS, update, updateDetails, type Voucher } from '../support/dialects.ts';
import { testService } from '../support/harness.ts';

/** The main operations of a merchant, in their usual order, over HTTP. */
for (const dialect of DIALECTS) {
  describe(dialect.name, () => {
    test('generates, downloads, checks, redeems, updates, looks up and lists', async (t) => {
      const { request, createMerchant, service } = await testService(t);
      const merchant = await createMerchant({ permit: ['update-redemption'] });
      const send = (message: Parameters<typeof request>[1]) => request(merchant, message);

      const batch = await send(dialect.generate('batch', 2, 25));
      assert.deepEqual([batch.status, batch.statusCode, batch.data.status], [200, '00', 'COMPLETED']);
      const [voucher] = batch.data.vouchers as Voucher[];
      assert.ok(voucher);
      assert.deepEqual((await send(dialect.download('batch'))).data, batch.data);

      const redeemed = await send(dialect.redeem(voucher, 10.5, 'sale'));
      assert.deepEqual([redeemed.statusCode, redeemed.data.amount, redeemed.replayed], ['00', 10.5, false]);
      const again = await send(dialect.redeem(voucher, 10.5, 'sale'));
      assert.deepEqual([again.statusCode, again.replayed, again.data], ['00', true, redeemed.data]);
      assert.equal((await send(dialect.redeem(voucher, 10.6, 'sale'))).statusCode, '94');

      const updated = await send(update('sale', 7));
      assert.deepEqual(updated.data.summary, { originalAmount: 10.5, newAmount: 7, reference: 'sale' });
      assert.deepEqual((await send(updateDetails('sale'))).data, updated.data);
      assert.equal((await send(update('sale', 7))).statusCode, '58');

      const found = await send(dialect.lookup('sale'));
      assert.deepEqual([found.data.amount, found.data.reference], [7, 'NEW-sale']);
      const missing = await send(dialect.lookup('nothing'));
      assert.deepEqual(
        [missing.statusCode, missing.status],
        [dialect.notFound, dialect.statusOf(dialect.notFound)],
      );

      const balance = await send(dialect.balance(voucher));
      assert.deepEqual([balance.data.balance, balance.data.usableAmount], [18, 18]);
      const list = (await send(dialect.list())).data as { transactionType: string }[];
      assert.equal(list[0]?.transactionType, 'REDEMPTION');

      assert.equal((await reconcile(service)).ok, true);
    });

    test('refuses to activate a voucher that generation has activated', async (t) => {
      const { request, createMerchant } = await testService(t);
      const merchant = await createMerchant();
      const batch = await request(merchant, dialect.generate('batch', 1, 25));
      const [voucher] = batch.data.vouchers as Voucher[];
      assert.ok(voucher);
      const refused = await request(merchant, dialect.activate(voucher, 'activation'));
      assert.deepEqual([refused.statusCode, refused.status], ['41', dialect.statusOf('41')]);
      assert.equal(refused.body.message, 'Voucher already activated');
    });
  });
}
