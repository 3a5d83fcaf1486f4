import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apiKeys, createKey } from '../../src/api-keys/keys.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator, basic } from '../support/harness.ts';
import { Till, UNKNOWN } from '../support/till.ts';

const SECOND_MS = 1_000;

/** A merchant with a rate limit on its key, and a stopped clock. */
async function openLimited(t: Parameters<typeof Till.open>[0], perSecond: number, burst: number) {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  await apiKeys.limit.run(asOperator(service), { keyId: till.merchant.keyId, perSecond, burst });
  clock.set(new Date());
  return { till, clock, operator: asOperator(service) };
}

for (const dialect of DIALECTS) {
  describe(`a key with a rate limit in ${dialect.name}`, () => {
    test('may send its burst, is then declined with 97, and continues at its rate', async (t) => {
      const { till, clock } = await openLimited(t, 2, 5);
      for (let left = 4; left >= 0; left--) {
        const { headers } = await till.done(dialect.list());
        assert.equal(headers.get('ratelimit-policy'), '"key";q=5;w=3');
        assert.equal(headers.get('ratelimit'), `"key";r=${left};t=${Math.ceil((5 - left) / 2)}`);
      }
      for (const request of [dialect.list(), dialect.redeem(UNKNOWN, 1, 'x'), dialect.generate('y', 1, 1)]) {
        const { status, headers, body } = await till.refused(dialect, '97', request);
        assert.deepEqual([status, body.message], [429, 'Too many requests']);
        assert.equal(headers.get('retry-after'), '1');
        assert.equal(headers.get('ratelimit'), '"key";r=0;t=3');
      }
      clock.advance(SECOND_MS / 2);
      await till.done(dialect.list());
      await till.refused(dialect, '97', dialect.list());
      clock.advance(60 * SECOND_MS);
      for (let call = 0; call < 5; call++) await till.done(dialect.list());
      await till.refused(dialect, '97', dialect.list());
    });

    test('does not affect other keys', async (t) => {
      const { till, operator } = await openLimited(t, 1, 1);
      const other = await Till.another(till.testService);
      await till.done(dialect.list());
      await till.refused(dialect, '97', dialect.list());
      const { headers } = await other.done(dialect.list());
      assert.deepEqual([headers.get('ratelimit'), headers.get('ratelimit-policy')], [null, null]);
      const { keyId, secret } = await createKey(operator, till.merchant.id);
      const second = { ...till.merchant, authorization: basic(keyId, secret) };
      assert.equal((await till.testService.request(second, dialect.list())).statusCode, '00');
    });

    test('is not charged for calls with a wrong secret', async (t) => {
      const { till } = await openLimited(t, 1, 1);
      const authorization = `Basic ${btoa(`${till.merchant.keyId}:wrong`)}`;
      for (let call = 0; call < 5; call++) {
        const { status, headers } = await till.testService.request(
          { ...till.merchant, authorization },
          dialect.list(),
        );
        assert.deepEqual([status, headers.get('ratelimit')], [401, null]);
      }
      await till.done(dialect.list());
    });

    test('follows a change of its limit within a second', async (t) => {
      const { till, clock, operator } = await openLimited(t, 1, 1);
      await till.done(dialect.list());
      await till.refused(dialect, '97', dialect.list());
      await apiKeys.limit.run(operator, { keyId: till.merchant.keyId, perSecond: null });
      clock.advance(SECOND_MS);
      for (let call = 0; call < 3; call++) await till.done(dialect.list());
      // Setting the clock back allows no second burst.
      await apiKeys.limit.run(operator, { keyId: till.merchant.keyId, perSecond: 1, burst: 1 });
      clock.advance(SECOND_MS);
      await till.done(dialect.list());
      clock.advance(-10 * SECOND_MS);
      await till.refused(dialect, '97', dialect.list());
    });
  });
}
