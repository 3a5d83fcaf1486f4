import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { A, B, fresh, httpClient, masked, type Voucher } from '../support/http.client.ts';

const { inject, call, newVoucher } = httpClient();

describe('variant B, where it differs,', () => {
  test('accepts code and PIN in two fields or in one, and returns the code as it was sent', async () => {
    const voucher = await newVoucher();
    const inOne = voucher.code + voucher.pin;
    const reference = fresh();
    const apart = { voucherCode: voucher.code, pin: voucher.pin, amount: 1, reference };
    const first = await call('POST', '/api/v2/redeem', apart);
    assert.equal(first.body.data.voucherCode, voucher.code);
    for (const pin of [{ pin: null }, {}]) {
      const again = await call('POST', '/api/v2/redeem', {
        voucherCode: inOne,
        ...pin,
        amount: 1,
        reference,
      });
      assert.equal(again.headers['idempotent-replayed'], 'true');
      assert.equal(again.body.data.voucherCode, inOne);
      assert.equal(again.body.data.transactionId, first.body.data.transactionId);
      const balance = await call('POST', '/api/v2/balance', { voucherCode: inOne, ...pin });
      assert.equal(balance.body.data.voucherCode, inOne);
    }
  });

  for (const [name, body, errors] of [
    ['12 digits without PIN', { voucherCode: '1'.repeat(12) }, ['pin required']],
    ['12 digits with null', { voucherCode: '1'.repeat(12), pin: null }, ['pin required']],
    ['16 digits with PIN', { voucherCode: '1'.repeat(16), pin: '1234' }, ['pin null']],
    ['14 digits', { voucherCode: '1'.repeat(14) }, ['voucherCode pattern']],
    ['a short PIN', { voucherCode: '1'.repeat(12), pin: '123' }, ['pin pattern']],
    ['digits of another script', { voucherCode: '١'.repeat(12), pin: '1234' }, ['voucherCode pattern']],
    ['no field', {}, ['voucherCode required']],
  ] as const) {
    test(`declines a voucher code with ${name}`, async () => {
      const { status, body: answer } = await call('POST', '/api/v2/balance', body);
      assert.equal(status, 200);
      assert.equal(answer.statusCode, '30');
      assert.deepEqual(
        answer.errors.map(({ field, rule }: { field: string; rule: string }) => `${field} ${rule}`),
        errors,
      );
    });
  }

  test('generates without a value, and activates by serial number', async () => {
    const reference = fresh();
    const { body } = await call('POST', '/api/v2/vouchers', {
      reference,
      quantity: 2,
      value: null,
      expiryDate: null,
    });
    assert.equal(body.data.value, null);
    const [one, two] = body.data.vouchers as [Voucher, Voucher];
    const activated = await call('POST', '/api/v2/activate', {
      serialNumber: one.serialNumber,
      value: 30,
      reference: fresh(),
    });
    assert.deepEqual(Object.keys(activated.body.data), B.transaction);
    assert.deepEqual([activated.body.data.transactionType, activated.body.data.amount], ['ACTIVATION', 30]);
    assert.equal(activated.body.data.voucherCode, masked(one.code));
    const plain = await call('POST', '/api/v2/activate', {
      serialNumber: two.serialNumber,
      value: null,
      reference: fresh(),
    });
    assert.equal(plain.body.data.amount, 5000);
  });

  for (const serialNumber of [
    '1.5',
    '0',
    '-1',
    '1000000000000000',
    '"10000000001"',
    'null',
    '1e999',
    '1.00000000000000001',
  ]) {
    test(`declines the serial number ${serialNumber}`, async () => {
      const { body } = await call(
        'POST',
        '/api/v2/activate',
        `{"serialNumber":${serialNumber},"reference":"${fresh()}"}`,
      );
      assert.equal(body.statusCode, '30');
      assert.equal(body.errors[0].field, 'serialNumber');
    });
  }

  test('reads an expiry date with any offset, and one without an offset as UTC', async () => {
    for (const [sent, shown] of [
      ['2999-12-31T23:59:59Z', '2999-12-31T23:59:59.000Z'],
      ['2999-12-31T23:59:59.5+02:00', '2999-12-31T21:59:59.500Z'],
      ['2999-12-31T23:59:59', '2999-12-31T23:59:59.000Z'],
    ]) {
      const { body } = await call('POST', '/api/v2/vouchers', {
        reference: fresh(),
        quantity: 1,
        value: 1,
        expiryDate: sent,
      });
      assert.equal(body.data?.expiryDate, shown, sent);
    }
    for (const expiryDate of [
      '2999-12-31',
      '2999-02-30T00:00:00Z',
      'tomorrow',
      '',
      '2999-12-31T25:00:00Z',
      5,
    ]) {
      const { body } = await call('POST', '/api/v2/vouchers', {
        reference: fresh(),
        quantity: 1,
        value: 1,
        expiryDate,
      });
      assert.equal(body.statusCode, '30', String(expiryDate));
      assert.equal(body.errors[0].field, 'expiryDate');
    }
  });
});

describe('variant A, where it differs,', () => {
  test('redeems without a reference, and finds the redemption by its transactionId', async () => {
    const { code, pin } = await newVoucher();
    for (const reference of [{}, { reference: null }]) {
      const { body } = await call('POST', '/merchant-client/v2/redeem', {
        code,
        pin,
        amount: 1,
        ...reference,
      });
      assert.equal(body.data.reference, null);
      const found = await call('GET', `/merchant-client/v2/transactions/${body.data.transactionId}`);
      assert.deepEqual(found.body.data, body.data);
    }
  });

  test('reverses a redemption in full when the update has no amount, with each media type', async () => {
    for (const type of [
      'application/json',
      'application/json-patch+json',
      'application/merge-patch+json; charset=utf-8',
    ]) {
      const reference = fresh();
      await call('POST', '/merchant-client/v2/redeem', {
        ...A.voucher(await newVoucher()),
        amount: 10,
        reference,
      });
      const response = await inject({
        method: 'POST',
        url: '/merchant-client/v2/redemptions/update',
        headers: { 'content-type': type },
        payload: JSON.stringify({ reference }),
      });
      const { data } = response.json();
      assert.equal(data.newTransaction, null);
      assert.equal(data.transactions.length, 2);
      assert.deepEqual(data.summary, { originalAmount: 10, newAmount: 0, reference });
    }
  });

  test('declines an update with a misspelled field and no amount, with each media type', async () => {
    const redemption = fresh();
    const voucher = await newVoucher();
    await call('POST', '/merchant-client/v2/redeem', {
      ...A.voucher(voucher),
      amount: 10,
      reference: redemption,
    });
    const update = async (body: object, type = 'application/json') => {
      const response = await inject({
        method: 'POST',
        url: '/merchant-client/v2/redemptions/update',
        headers: { 'content-type': type },
        payload: JSON.stringify({ reference: redemption, ...body }),
      });
      return { status: response.statusCode, text: response.body, body: response.json() };
    };
    const types = ['application/json', 'application/json-patch+json', 'application/merge-patch+json'];
    for (const type of types) {
      for (const name of ['amount', 'amountused', 'AmountUsed', 'amount_used']) {
        const { status, body } = await update({ [name]: 3 }, type);
        assert.deepEqual([status, body.statusCode, body.data], [400, '30', null]);
        assert.deepEqual(
          body.errors.map(({ field, rule }: { field: string; rule: string }) => [field, rule]),
          [[name, 'unknown']],
        );
      }
    }
    // A name that could be a code is not repeated in the answer.
    const { text, body } = await update({ [voucher.code]: 3, x: null });
    assert.deepEqual(
      body.errors.map(({ field }: { field: string }) => field),
      ['body', 'x'],
    );
    assert.ok(!text.includes(voucher.code));
    const many = await update(Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`x${at}`, at])));
    assert.ok(many.body.errors.length <= 10);
    // With an amount the request is clear, and unknown fields are ignored as everywhere.
    const done = await update({ amountUsed: 7.5, amount: 3 });
    assert.deepEqual([done.status, done.body.data.summary.newAmount], [200, 7.5]);
  });
});
