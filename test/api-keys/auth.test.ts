import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apiKeys, createKey, findKeyInfo } from '../../src/api-keys/keys.ts';
import { findMerchant, merchants } from '../../src/merchants/merchants.ts';
import { type ApiRequest, DIALECTS, type Dialect, update, updateDetails } from '../support/dialects.ts';
import { asOperator, basic } from '../support/harness.ts';
import { Till, UNKNOWN } from '../support/till.ts';

const SECOND_MS = 1_000;
const [A] = DIALECTS as [Dialect, Dialect];

/** Every call of a dialect. */
function everyCall(dialect: Dialect): ApiRequest[] {
  return [
    dialect.generate('x', 1, 1),
    dialect.download('x'),
    dialect.activate(UNKNOWN, 'x'),
    dialect.balance(UNKNOWN),
    dialect.redeem(UNKNOWN, 1, 'x'),
    dialect.lookup('x'),
    dialect.list(),
    ...(dialect === A ? [update('x', 1), updateDetails('x')] : []),
  ];
}

for (const dialect of DIALECTS) {
  describe(`authentication by ${dialect.name}`, () => {
    test('answers an unknown key, a wrong secret and a revoked key alike, for every call', async (t) => {
      const till = await Till.open(t);
      const { service, clock, request } = till.testService;
      const { merchant } = till;
      const old = await createKey(asOperator(service), merchant.id);
      await apiKeys.revoke.run(asOperator(service), { keyId: old.keyId });
      clock.advance(SECOND_MS);
      for (const [keyId, secret] of [
        ['key_thatIsUnknown000', merchant.secret],
        [merchant.keyId, old.secret],
        [merchant.keyId, ''],
        [old.keyId, old.secret],
      ] as const) {
        const authorization = basic(keyId, secret);
        for (const asked of everyCall(dialect)) {
          const { status, headers, body } = await request({ ...merchant, authorization }, asked);
          assert.deepEqual(body, { statusCode: '01', message: 'Unauthorized', data: null });
          assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Basic']);
          assert.ok(headers.get('x-request-id'));
        }
      }
    });

    test('refuses a revoked key within a second, and accepts another key of the merchant', async (t) => {
      const till = await Till.open(t);
      const second = await till.elsewhere(t);
      const { service, clock, request } = till.testService;
      const { keyId, secret } = await createKey(asOperator(service), till.merchant.id);
      await till.done(dialect.list());
      await second.done(dialect.list());
      await apiKeys.revoke.run(asOperator(service), { keyId: till.merchant.keyId });
      clock.advance(SECOND_MS);
      await till.refused(dialect, '01', dialect.list());
      await second.refused(dialect, '01', dialect.list());
      const authorization = basic(keyId, secret);
      assert.equal((await request({ ...till.merchant, authorization }, dialect.list())).statusCode, '00');
    });

    test('refuses every call while the merchant is suspended', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      await till.done(dialect.list());
      await merchants.suspend.run(asOperator(service), { id: String(till.merchant.id) });
      clock.advance(SECOND_MS);
      for (const asked of everyCall(dialect)) {
        const { body } = await till.refused(dialect, '04', asked);
        assert.equal(body.message, 'Merchant suspended');
      }
      await merchants.resume.run(asOperator(service), { id: String(till.merchant.id) });
      clock.advance(SECOND_MS);
      await till.done(dialect.list());
    });

    test('refuses a call within a second after its permission was withdrawn', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      const voucher = await till.voucher();
      for (const [permission, asked] of [
        ['generate', dialect.generate('y', 1, 1)],
        ['balance', dialect.balance(voucher)],
        ['redeem', dialect.redeem(voucher, 1, 'y')],
        ['activate', dialect.activate(voucher, 'y')],
        ['download', dialect.download('y')],
      ] as const) {
        assert.notEqual((await till.ask(asked)).statusCode, '03');
        await merchants.forbid.run(asOperator(service), { id: String(till.merchant.id), permission });
        clock.advance(SECOND_MS);
        const { body } = await till.refused(dialect, '03', asked);
        assert.equal(body.message, 'Access denied');
      }
      // A list of the merchant's own transactions needs no permission.
      await till.done(dialect.list());
    });
  });
}

test('a key is created and revoked, and a merchant suspended, at the time of the service', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const at = new Date('2020-02-29T12:00:00Z');
  clock.set(at);
  const { keyId } = await createKey(asOperator(service), till.merchant.id);
  await apiKeys.revoke.run(asOperator(service), { keyId });
  await merchants.suspend.run(asOperator(service), { id: String(till.merchant.id) });
  const key = await findKeyInfo(service, keyId);
  const merchant = await findMerchant(service.db, till.merchant.id);
  assert.deepEqual([key?.createdAt, key?.revokedAt, merchant?.suspendedAt], [at, at, at]);
});
