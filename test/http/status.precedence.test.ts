import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apiKeys } from '../../src/api-keys/keys.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { createProduct, productDefaults, products } from '../../src/products/products.ts';
import { DAY_MS } from '../../src/time.ts';
import { blockVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { type ApiRequest, DIALECTS, type Dialect, update } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { Till, tillsOfOneService, UNKNOWN, withWrongPin } from '../support/till.ts';

const openTill = tillsOfOneService();

const SECOND_MS = 1_000;
const [A, B] = DIALECTS as [Dialect, Dialect];

/**
 * Several refusals apply to each of these requests. The first one in the order of precedence is returned.
 */
for (const dialect of DIALECTS) {
  describe(`the refusals of ${dialect.name}`, () => {
    test('for invalid values precede those for missing permissions', async () => {
      const till = await openTill({
        forbid: ['generate', 'redeem', 'activate', 'balance'],
        permit: [],
        float: 0n,
      });
      const refused = (code: string, request: ApiRequest) => till.refused(dialect, code, request);
      await refused('18', dialect.generate('NEW-x', 0, -1));
      await refused('16', dialect.generate('x', 0, -1));
      await refused('13', dialect.generate('x', 1, -1));
      await refused('03', dialect.generate('x', 1, 1e6));
      await refused('18', dialect.redeem(UNKNOWN, -1, ''));
      await refused('13', dialect.redeem(UNKNOWN, -1, 'x'));
      await refused('13', dialect.redeem(UNKNOWN, 0.001, 'x'));
      await refused('03', dialect.redeem(UNKNOWN, 1, 'x'));
      await refused('18', dialect.activate(UNKNOWN, 'CANCEL-x'));
      await refused('03', dialect.activate(UNKNOWN, 'x'));
      await refused('03', dialect.balance(UNKNOWN));
      await till.refused(A, '18', update('NEW-x', -1));
      await till.refused(A, '13', update('x', -1));
      await till.refused(A, '13', update('x', 0.001));
      await till.refused(A, '03', update('x', 1));
    });

    test('for a malformed request precede those for invalid values', async () => {
      const till = await openTill({ forbid: ['redeem', 'generate'] });
      const redeem = dialect.redeem(UNKNOWN, -1, 'NEW-x');
      await till.refused(dialect, '30', { ...redeem, body: { ...(redeem.body as object), amount: '1' } });
      const generate = dialect.generate('NEW-x', 0, -1);
      await till.refused(dialect, '30', {
        ...generate,
        body: { ...(generate.body as object), quantity: '1' },
      });
    });

    test('of the caller precede those of the request', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      // Noon, so that no guess falls on another day.
      clock.set(new Date(Date.UTC(2030, 0, 15, 12)));
      const wrongForm: ApiRequest = { ...dialect.redeem(UNKNOWN, 1, 'x'), body: {} };
      await till.refused(dialect, '30', wrongForm);
      // More than fifty guesses in a day.
      for (let guess = 1; guess <= 51; guess++) await till.refused(dialect, '14', dialect.balance(UNKNOWN));
      await merchants.suspend.run(asOperator(service), { id: String(till.merchant.id) });
      clock.advance(SECOND_MS);
      await till.refused(dialect, '97', wrongForm);
      await till.refused(dialect, '04', dialect.generate('', 0, -1));
      await apiKeys.revoke.run(asOperator(service), { keyId: till.merchant.keyId });
      clock.advance(SECOND_MS);
      await till.refused(dialect, '01', wrongForm);
      const unknown = await till.ask({ method: 'GET', path: `${dialect.prefix}/unknown` });
      assert.deepEqual([unknown.statusCode, unknown.status], ['98', 404]);
    });

    test('of a generation come in the order 94, 61, 16 (above the limit), 50', async () => {
      const till = await openTill({ float: 25_00n });
      await till.done(dialect.generate('x', 1, 25));
      await till.refused(dialect, '94', dialect.generate('x', 100_001, 1e6));
      await till.refused(dialect, '94', dialect.generate('x', 1, 26));
      await till.refused(dialect, '61', dialect.generate('y', 100_001, 1e6));
      await till.refused(dialect, '16', dialect.generate('y', 100_001, 26));
      await till.refused(dialect, '50', dialect.generate('y', 1, 26));
    });

    test('of a redemption come in the order 94, 14, 75, 55, 44, 43, 54, 40, 47, 42, 51', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      await createProduct(asOperator(service), {
        ...productDefaults('USD', 2),
        scope: 'issuer',
        code: 'OWN',
        name: 'Own',
      });
      const issuer = await Till.another(till.testService, { product: 'OWN' });
      const used = await till.voucher();
      const inactive = await issuer.voucher(null);
      const [empty, blocked, replaced, expired] = await issuer.vouchers(4);
      assert.ok(empty && blocked && replaced && expired);
      await till.done(dialect.redeem(used, 25, 'used'));
      await issuer.done(dialect.redeem(empty, 25, 'all'));
      const refused = (code: string, request: ApiRequest) => till.refused(dialect, code, request);
      await refused('94', dialect.redeem(UNKNOWN, 25, 'used'));
      await refused('94', dialect.redeem(withWrongPin(used), 24, 'used'));
      await refused('40', dialect.redeem(inactive, 1, 'x'));
      await refused('47', dialect.redeem(empty, 26, 'x'));
      await refused('42', dialect.redeem(used, 26, 'x'));
      await replaceVoucher(asOperator(service), BigInt(replaced.serialNumber));
      for (const { serialNumber } of [blocked, inactive])
        await blockVoucher(asOperator(service), BigInt(serialNumber));
      await refused('43', dialect.redeem(inactive, 1, 'x'));
      clock.advance(366 * DAY_MS);
      await refused('44', dialect.redeem(replaced, 1e4, 'x'));
      await refused('43', dialect.redeem(blocked, 1e4, 'x'));
      await refused('54', dialect.redeem(expired, 1e4, 'x'));
      await refused('54', dialect.redeem(used, 26, 'x'));
      for (let guess = 1; guess <= 5; guess++)
        await refused('55', dialect.redeem(withWrongPin(replaced), 1, 'x'));
      await refused('75', dialect.redeem(replaced, 1, 'x'));
    });

    test('of an activation come in the order 94, 14, 44, 43, 54, 41, 50', async (t) => {
      const till = await Till.open(t, { float: 5_000_00n });
      const { service, clock } = till.testService;
      const [active, blocked, replaced, other] = await till.vouchers(4, null);
      assert.ok(active && blocked && replaced && other);
      const refused = (code: string, request: ApiRequest) => till.refused(dialect, code, request);
      await till.done(dialect.activate(active, 'used'));
      await refused('94', dialect.activate(UNKNOWN, 'used'));
      await refused('41', dialect.activate(active, 'x'));
      await refused('50', dialect.activate(other, 'x'));
      await replaceVoucher(asOperator(service), BigInt(replaced.serialNumber));
      await blockVoucher(asOperator(service), BigInt(blocked.serialNumber));
      clock.advance(366 * DAY_MS);
      await refused('44', dialect.activate(replaced, 'x'));
      await refused('43', dialect.activate(blocked, 'x'));
      await refused('54', dialect.activate(active, 'x'));
      await refused('54', dialect.activate(other, 'x'));
    });
  });
}

test('the refusals of an update come in the order 43 and 54, 58, 51', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const voucher = await till.voucher(25);
  await till.done(A.redeem(voucher, 10, 'x'));
  await till.done(update('x', 5));
  await till.refused(A, '58', update('x', 1_000));
  await till.refused(A, '58', update('x', 0));
  clock.advance(366 * DAY_MS);
  await till.refused(A, '54', update('x', 1_000));
  await till.refused(A, '58', update('x', 1));
  await blockVoucher(asOperator(service), BigInt(voucher.serialNumber));
  await till.refused(A, '43', update('x', 1_000));
  await till.refused(A, '58', update('x', 1));
});

test('the refusals of a generation come in the order 13, 03, 94, 17, 15, 61, 16', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const request = (reference: string, quantity: number, value: number): ApiRequest => ({
    method: 'POST',
    path: '/api/v2/vouchers',
    body: { reference, quantity, value, expiryDate: '2020-01-01T00:00:00Z' },
  });
  await till.done(B.generate('used', 1, 10));
  await till.refused(B, '94', request('used', 100_001, 1e6));
  await till.refused(B, '17', request('x', 100_001, 1e6));
  await products.offSale.run(asOperator(service), { code: 'DEFAULT' });
  await till.refused(B, '94', request('used', 100_001, 1e6));
  await till.refused(B, '17', request('x', 100_001, 1e6));
  await till.refused(B, '15', B.generate('x', 100_001, 1e6));
  await merchants.forbid.run(asOperator(service), { id: String(till.merchant.id), permission: 'generate' });
  clock.advance(SECOND_MS);
  await till.refused(B, '13', request('used', 1, -1));
  await till.refused(B, '03', request('used', 1, 1e6));
});

test('an amount too fine for the product is refused before a missing permission', async (t) => {
  const till = await Till.open(t, { forbid: ['generate'] });
  const { service } = till.testService;
  await createProduct(asOperator(service), { ...productDefaults('KWD', 3), code: 'DINAR', name: 'Dinar' });
  for (const dialect of DIALECTS) {
    await till.refused(dialect, '13', dialect.generate('x', 1, 0.001));
    await till.refused(dialect, '03', dialect.generate('x', 1, 0.01));
  }
});
