import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { asOperator, testService } from '../support/harness.ts';

test("an order beyond a limit is refused with the contract's message and the limit", async (t) => {
  const testing = await testService(t);
  const merchant = await testing.createMerchant();
  const terms = {
    ...productDefaults('EUR', 2),
    minValue: 500n,
    maxValue: 20_000n,
    maxQuantity: 40,
  };
  await createProduct(asOperator(testing.service), { ...terms, code: 'CARD', name: 'Card' });
  const order = async (path: string, body: object) =>
    (await testing.request(merchant, { method: 'POST', path, body })).body;
  const inA = { reference: 'r-1', productCode: 'CARD' };
  const path = '/merchant-client/v2/vouchers';
  const cases = [
    [
      { ...inA, quantity: 1, amount: 4.99 },
      '61',
      'Amount outside limits',
      'amount',
      'limits',
      '5.00 to 200.00 EUR',
    ],
    [{ ...inA, quantity: 41, amount: 10 }, '16', 'Invalid quantity', 'quantity', 'quantity', '1 to 40'],
  ] as const;
  for (const [body, statusCode, message, field, rule, limit] of cases) {
    const answer = await order(path, body);
    assert.deepEqual([answer.statusCode, answer.message], [statusCode, message]);
    const [error] = answer.errors;
    assert.deepEqual([error.field, error.rule], [field, rule]);
    assert.ok(error.message.endsWith(`: ${limit}`), error.message);
  }
  const inB = await order('/api/v2/vouchers', { reference: 'r-1', quantity: 100_001 });
  assert.equal(inB.statusCode, '16');
  assert.match(inB.errors[0].message, /: 1 to 100000$/);
});
