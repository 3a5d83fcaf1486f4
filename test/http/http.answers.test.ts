import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BatchData, balanceFields } from '../../src/http/fields.ts';
import { A, B, fresh, httpClient, masked, TIME } from '../support/http.client.ts';

const { call, newVoucher } = httpClient();
/** The last one is `vouchers`. */
const BATCH = Object.keys(BatchData.properties);

for (const dialect of [A, B]) {
  const { prefix, missing } = dialect;

  describe(`an answer of ${dialect.name}`, () => {
    test('shows a batch with the documented fields in their order', async () => {
      const reference = fresh();
      const generated = await call('POST', `${prefix}/vouchers`, dialect.generate(reference, 3, 12.5));
      assert.equal(generated.status, 200);
      assert.deepEqual(Object.keys(generated.body), ['statusCode', 'message', 'data']);
      assert.equal(generated.body.message, 'Success');
      const { data } = generated.body;
      assert.deepEqual(Object.keys(data), BATCH);
      assert.deepEqual([data.reference, data.status, data.value], [reference, 'COMPLETED', 12.5]);
      assert.match(data.expiryDate, TIME);
      assert.equal(data.vouchers.length, 3);
      for (const voucher of data.vouchers) {
        assert.deepEqual(Object.keys(voucher), ['serialNumber', 'code', 'pin']);
        assert.ok(Number.isSafeInteger(voucher.serialNumber));
        assert.match(voucher.code, /^[1-9]\d{11}$/);
        assert.match(voucher.pin, /^\d{4}$/);
      }
      const downloaded = await call('GET', `${prefix}/vouchers/${reference}`);
      assert.deepEqual(downloaded.body, generated.body);
      assert.equal(downloaded.headers['idempotent-replayed'], undefined);
    });

    test('shows a batch in production without vouchers', async () => {
      const reference = fresh();
      for (const answer of [
        await call('POST', `${prefix}/vouchers`, dialect.generate(reference, 11, 1)),
        await call('GET', `${prefix}/vouchers/${reference}`),
      ]) {
        assert.equal(answer.body.data.status, 'PROCESSING');
        assert.deepEqual(Object.keys(answer.body.data), BATCH.slice(0, -1));
      }
    });

    test('shows a redemption in the same way in its answer, lookup and list', async () => {
      const voucher = await newVoucher();
      const reference = fresh();
      const redeemed = await call('POST', `${prefix}/redeem`, {
        ...dialect.voucher(voucher),
        amount: 10.25,
        reference,
      });
      assert.equal(redeemed.status, 200);
      const { data } = redeemed.body;
      assert.deepEqual(Object.keys(data), dialect.transaction);
      assert.deepEqual([data.transactionType, data.amount, data.reference], ['REDEMPTION', 10.25, reference]);
      assert.equal(data.serialNumber, String(voucher.serialNumber));
      assert.match(data.timestamp, TIME);
      assert.equal(data.voucherCode, dialect === A ? masked(voucher.code) : voucher.code);
      if (dialect === A) assert.deepEqual([data.refundStatus, data.note], [null, null]);

      const found = await call('GET', `${prefix}/transactions/${reference}`);
      assert.deepEqual(found.body.data, { ...data, voucherCode: masked(voucher.code) });
      const listed = await call('GET', `${prefix}/transactions`);
      assert.deepEqual(listed.body.data[0], found.body.data);
      assert.ok(!listed.text.includes(voucher.code));
    });

    test('shows a balance with the documented fields in their order', async () => {
      const voucher = await newVoucher();
      const reference = fresh();
      await call('POST', `${prefix}/redeem`, { ...dialect.voucher(voucher), amount: 5, reference });
      const { status, body } = await call('POST', `${prefix}/balance`, dialect.voucher(voucher));
      assert.equal(status, 200);
      const { data } = body;
      assert.deepEqual(Object.keys(data), dialect.balance);
      assert.deepEqual(
        [data.serialNumber, data.voucherCode, data.balance, data.usableAmount],
        [voucher.serialNumber, voucher.code, 20, 20],
      );
      if (dialect === A) assert.equal(data.value, 25);
      assert.deepEqual(
        data.transactions.map((each: Record<string, unknown>) => [each['transactionType'], each['amount']]),
        [
          ['ACTIVATION', 25],
          ['REDEMPTION', 5],
        ],
      );
      const fields = Object.keys(balanceFields.transactions.items.properties);
      for (const each of data.transactions) assert.deepEqual(Object.keys(each), fields);
    });

    test('says whether vouchers or a transaction were not found', async () => {
      const batch = await call('GET', `${prefix}/vouchers/${fresh()}`);
      assert.equal(batch.status, missing);
      assert.deepEqual(batch.body, { statusCode: '60', message: 'Vouchers not found', data: null });
      const transaction = await call('GET', `${prefix}/transactions/${fresh()}`);
      assert.equal(transaction.status, missing);
      const statusCode = dialect === A ? '60' : '99';
      assert.deepEqual(transaction.body, { statusCode, message: 'Transaction not found', data: null });
    });
  });
}
