import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { merchants } from '../../src/merchants/merchants.ts';
import { MINOR_MAX } from '../../src/money.ts';
import { products } from '../../src/products/products.ts';
import { DAY_MS } from '../../src/time.ts';
import { A, type ApiRequest, B, DIALECTS, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { ownerOf } from '../support/owner.ts';
import { Till, tillsOfOneService } from '../support/till.ts';

const openTill = tillsOfOneService();

/** The greatest amount with two decimals: MINOR_MAX minor units. */
const GREATEST = 9_999_999_999_999.99;
/** A request of variant B, whose fields dialect.generate does not all offer. */
const generateB = (reference: string, more: Record<string, unknown>): ApiRequest => ({
  method: 'POST',
  path: '/api/v2/vouchers',
  body: { reference, quantity: 1, value: 10, ...more },
});

const generateA = (reference: string, more: Record<string, unknown>): ApiRequest => ({
  method: 'POST',
  path: '/merchant-client/v2/vouchers',
  body: { reference, productCode: 'DEFAULT', quantity: 1, amount: 10, ...more },
});

for (const dialect of DIALECTS) {
  describe(`generation by ${dialect.name}`, () => {
    test('returns up to ten vouchers at once, active and paid for', async () => {
      const till = await openTill({ float: 250_00n });
      const { data } = await till.done(dialect.generate('batch', 10, 25));
      assert.deepEqual([data.status, data.value, data.reference], ['COMPLETED', 25, 'batch']);
      const vouchers = data.vouchers as Voucher[];
      assert.equal(new Set(vouchers.map(({ code }) => code)).size, 10);
      let last = 0;
      for (const { serialNumber, code, pin } of vouchers) {
        assert.match(code, /^[1-9]\d{11}$/);
        assert.match(pin, /^\d{4}$/);
        assert.ok(serialNumber > last && serialNumber < 1e15);
        last = serialNumber;
      }
      for (const voucher of vouchers)
        await till.done(dialect.redeem(voucher, 25, `sale-${voucher.serialNumber}`));
      await till.refused(dialect, '50', dialect.generate('more', 1, 0.01));
      await till.refused(dialect, '60', dialect.download('more'));
      await till.reconciles();
    });

    test('is replayed through either prefix, and declines another request under its reference', async () => {
      const till = await openTill();
      const first = await till.done(dialect.generate('batch', 2, 25));
      for (const other of DIALECTS) {
        const again = await till.done(other.generate('batch', 2, 25));
        assert.deepEqual([again.replayed, again.data], [true, first.data]);
        await till.refused(other, '94', other.generate('batch', 3, 25));
        await till.refused(other, '94', other.generate('batch', 2, 25.01));
        assert.deepEqual((await till.done(other.download('batch'))).data, first.data);
      }
      await till.reconciles();
    });

    test('declines a quantity, value or reference out of bounds', async () => {
      const till = await openTill({ float: 1_000_000_000_00n });
      for (const quantity of [0, -1, 1.5, 100_001, 1e15])
        await till.refused(dialect, '16', dialect.generate('x', quantity, 1));
      for (const value of [0, -1, 0.001, 1e300])
        await till.refused(dialect, '13', dialect.generate('x', 1, value));
      await till.refused(dialect, '61', dialect.generate('x', 1, 100_000.01));
      for (const reference of [
        '',
        'CANCEL-x',
        'NEW-x',
        'x'.repeat(101),
        'a\u0000b',
        'a\nb',
        'a\u0085b',
        '\ud800',
      ])
        await till.refused(dialect, '18', dialect.generate(reference, 1, 1));
      await till.done(dialect.generate('x', 1, 0.01));
      await till.done(dialect.generate('y', 1, 100_000));
    });

    test('declines with 50 a batch that costs more than any float can hold', async (t) => {
      const till = await Till.open(t);
      await till.product('VAST', { maxValue: MINOR_MAX, maxQuantity: 5_000_000 });
      const other = await Till.another(till.testService, { product: 'VAST', float: MINOR_MAX });
      const generate = dialect === A ? generateA : generateB;
      const value = dialect === A ? { productCode: 'VAST', amount: GREATEST } : { value: GREATEST };
      for (const quantity of [1_000, 5_000_000])
        await other.refused(dialect, '50', generate('batch', { ...value, quantity }));
      await other.refused(dialect, '60', dialect.download('batch'));
      const { data } = await other.done(generate('batch', value));
      const [voucher] = data.vouchers as [Voucher];
      await other.refused(dialect, '13', dialect.redeem(voucher, 1e13, 'sale'));
      await other.done(dialect.redeem(voucher, GREATEST, 'sale'));
      await till.refused(dialect, '51', dialect.redeem(await till.voucher(), GREATEST, 'sale'));
      await till.reconciles();
    });

    test('returns a batch that other merchants cannot download', async () => {
      const till = await openTill();
      const other = await Till.another(till.testService);
      await till.done(dialect.generate('batch', 1, 25));
      const { body } = await other.refused(dialect, '60', dialect.download('batch'));
      assert.equal(body.message, 'Vouchers not found');
      assert.equal((await other.done(dialect.generate('batch', 2, 5))).replayed, false);
    });
  });
}

describe('a product', () => {
  test('is declined in A when it is unknown, off sale or of another merchant', async (t) => {
    const till = await Till.open(t);
    const { service } = till.testService;
    await till.product('OFF');
    await products.offSale.run(asOperator(service), { code: 'OFF' });
    const other = await Till.another(till.testService);
    await till.product('THEIRS', { merchantId: String(other.merchant.id) });
    for (const productCode of ['OFF', 'THEIRS', 'UNKNOWN', ''])
      await till.refused(A, '15', generateA('x', { productCode }));
    await other.done(generateA('x', { productCode: 'THEIRS' }));
  });

  test("sets bounds, currency and validity; variant B uses the merchant's default one", async (t) => {
    const till = await Till.open(t);
    const { clock } = till.testService;
    const terms = { minValue: 100n, maxValue: 900n, maxQuantity: 3, validityDays: 10 };
    await till.product('YEN', terms, 'JPY', 0);
    const yen = await Till.another(till.testService, { product: 'YEN', float: 1_000n });
    for (const [code, more] of [
      ['16', { quantity: 4, value: 100 }],
      ['13', { value: 100.5 }],
      ['61', { value: 99 }],
      ['61', { value: 901 }],
      ['50', { quantity: 2, value: 501 }],
    ] as const)
      await yen.refused(B, code, generateB('x', more));
    clock.set(new Date(Date.UTC(2031, 0, 1)));
    const { data } = await yen.done(generateB('x', { quantity: 2, value: 500 }));
    assert.equal(data.expiryDate, '2031-01-11T23:59:59.999Z');
    // A float in dollars does not pay for a voucher in yen.
    await till.refused(A, '50', generateA('x', { productCode: 'YEN', amount: 100 }));
    await till.reconciles();
  });

  test('is part of the request: the same reference with another product is declined', async (t) => {
    const till = await Till.open(t);
    await till.product('OTHER');
    await till.done(generateA('x', {}));
    await till.refused(A, '94', generateA('x', { productCode: 'OTHER' }));
    await till.done(generateA('y', { productCode: 'OTHER' }));
    // Variant B uses the default product.
    await till.refused(B, '94', generateB('y', {}));
  });
});

describe('an expiry date', () => {
  test('must be at least a day away', async (t) => {
    const till = await Till.open(t);
    const now = new Date(Date.UTC(2031, 0, 1, 12));
    till.testService.clock.set(now);
    const inMs = (ms: number) => new Date(now.getTime() + ms).toISOString();
    for (const ms of [-1, 0, DAY_MS - 60_000, DAY_MS - 1_000])
      await till.refused(B, '17', generateB('x', { expiryDate: inMs(ms) }));
    const day = await till.done(generateB('x', { expiryDate: inMs(DAY_MS) }));
    assert.equal(day.data.expiryDate, inMs(DAY_MS));
    // In UTC this time lies in the year 10000, which a date-time of the API cannot hold.
    await till.refused(B, '30', generateB('late', { expiryDate: '9999-12-31T23:59:59-12:00' }));
    await till.refused(B, '94', generateB('x', { expiryDate: inMs(2 * DAY_MS) }));
    await till.refused(B, '94', generateB('x', {}));
  });

  test('is the end of the last day of validity when the request has none', async (t) => {
    const till = await Till.open(t);
    for (const [hour, minute, ms] of [
      [0, 0, 0],
      [12, 30, 0],
      [23, 59, 59_999],
    ] as const) {
      till.testService.clock.set(new Date(Date.UTC(2031, 0, 1, hour, minute, 0, ms)));
      for (const more of [{}, { expiryDate: null }]) {
        const { data } = await till.done(generateB(`${hour} ${JSON.stringify(more)}`, more));
        assert.equal(data.expiryDate, '2032-01-01T23:59:59.999Z');
      }
    }
  });
});

describe('the retry of a successful generation', () => {
  const now = new Date(Date.UTC(2031, 0, 1, 12));
  const expiryDate = new Date(now.getTime() + DAY_MS).toISOString();

  test('is a replay after the expiry date has come near or passed', async (t) => {
    const till = await Till.open(t);
    const { clock } = till.testService;
    clock.set(now);
    const first = await till.done(generateB('dated', { expiryDate }));
    const undated = await till.done(generateB('undated', {}));
    for (const ms of [60_000, 2 * 3_600_000, 400 * DAY_MS]) {
      clock.advance(ms);
      for (const [order, made] of [
        [generateB('dated', { expiryDate }), first],
        [generateB('undated', {}), undated],
      ] as const) {
        const again = await till.done(order);
        assert.deepEqual([again.replayed, again.data], [true, made.data]);
      }
    }
    await till.refused(B, '94', generateB('dated', { expiryDate, quantity: 2 }));
    await till.reconciles();
  });

  test('is a replay after the product went off sale or got another merchant or bounds', async (t) => {
    const till = await Till.open(t);
    const { service, url } = till.testService;
    const other = await Till.another(till.testService);
    const first = await till.done(A.generate('x', 5, 25));
    await products.offSale.run(asOperator(service), { code: 'DEFAULT' });
    const owner = await ownerOf(t, url);
    const limits = `min_value_minor = 9000, max_value_minor = 9500, max_quantity = 2, merchant_id = ${other.merchant.id}`;
    await owner.query({ text: `update scrip.products set ${limits} where code = 'DEFAULT'`, values: [] });
    for (const dialect of DIALECTS) {
      const again = await till.done(dialect.generate('x', 5, 25));
      assert.deepEqual([again.replayed, again.data], [true, first.data]);
      await till.refused(dialect, '94', dialect.generate('x', 5, 26));
    }
    await till.refused(A, '15', A.generate('y', 5, 25));
  });

  for (const [currency, decimals, codes] of [
    ['USD', 2, ['94', '50']],
    ['JPY', 0, ['13', '13']], // it cannot represent the value of the first request
  ] as const) {
    test(`is a replay after the default product changed to one in ${currency}, without a float`, async (t) => {
      const till = await Till.open(t, { float: 2_50n });
      const { service, clock } = till.testService;
      await till.product('OTHER', {}, currency, decimals);
      const first = await till.done(generateB('x', { value: 2.5 }));
      const id = String(till.merchant.id);
      await merchants.set.run(asOperator(service), { id, product: 'OTHER' });
      clock.advance(1_000);
      const again = await till.done(generateB('x', { value: 2.5 }));
      assert.deepEqual([again.replayed, again.data], [true, first.data]);
      // Variant A names the product of the first request. The new default product makes it another request.
      assert.equal((await till.done(generateA('x', { amount: 2.5 }))).replayed, true);
      await till.refused(A, codes[0], generateA('x', { amount: 2.5, productCode: 'OTHER' }));
      await till.refused(B, '94', generateB('x', { value: 2.5, quantity: 2 }));
      await till.refused(B, codes[1], generateB('y', { value: 2.5 }));
    });
  }
});

describe('vouchers without a value', () => {
  test('cost nothing until they are activated', async () => {
    const till = await openTill({ float: 0n });
    const [voucher] = await till.vouchers(10, null);
    assert.ok(voucher);
    assert.equal(await till.balanceOf(voucher), 0);
    await till.refused(B, '40', B.redeem(voucher, 1, 'sale'));
    await till.refused(B, '50', B.activate(voucher, 'activation'));
    await till.reconciles();
  });
});
