import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { flushCalls } from '../../src/api-keys/guesses.ts';
import {
  apiKeys,
  createKey,
  findKeyInfo,
  listKeys,
  type NewKey,
  type Restrictions,
} from '../../src/api-keys/keys.ts';
import { buildServer } from '../../src/http/server.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { containing, readNetwork } from '../../src/network.ts';
import { HOUR_MS } from '../../src/time.ts';
import { DIALECTS } from '../support/dialects.ts';
import { asOperator, basic } from '../support/harness.ts';
import { Till } from '../support/till.ts';

const SECOND_MS = 1_000;

/** The same merchant with another API key. */
function withKey(till: Till, { keyId, secret }: NewKey): Till {
  const merchant = { ...till.merchant, keyId, secret, authorization: basic(keyId, secret) };
  return Object.assign(Object.create(Till.prototype), till, { merchant });
}

async function openWith(t: Parameters<typeof Till.open>[0], restrictions: Restrictions) {
  const till = await Till.open(t);
  const operator = asOperator(till.testService.service);
  const key = await createKey(operator, till.merchant.id, restrictions);
  return { till, operator, key, restricted: withKey(till, key) };
}

for (const dialect of DIALECTS) {
  describe(`an API key in ${dialect.name}`, () => {
    test('has the permissions of its scopes that its merchant has too, and else gets 03', async (t) => {
      const { till, operator, restricted } = await openWith(t, { scopes: ['balance', 'redeem'] });
      const voucher = await till.voucher();
      await restricted.done(dialect.balance(voucher));
      await restricted.done(dialect.redeem(voucher, 1, 'x'));
      await restricted.refused(dialect, '03', dialect.generate('y', 1, 1));
      await till.done(dialect.generate('y', 1, 1));
      // A scope alone is no permission: the merchant must have it too.
      await merchants.forbid.run(operator, { id: String(till.merchant.id), permission: 'redeem' });
      till.testService.clock.advance(SECOND_MS);
      await restricted.refused(dialect, '03', dialect.redeem(voucher, 1, 'z'));
    });

    test('downloads codes and PINs only with the scope download or generate', async (t) => {
      const { till, operator, restricted } = await openWith(t, { scopes: ['balance', 'redeem'] });
      await till.done(dialect.generate('y', 1, 1));
      await restricted.refused(dialect, '03', dialect.download('y'));
      await restricted.refused(dialect, '03', dialect.download('unknown'));
      await restricted.refused(dialect, '18', dialect.download('x'.repeat(101)));
      for (const scope of ['download', 'generate'] as const) {
        const key = await createKey(operator, till.merchant.id, { scopes: [scope] });
        await withKey(till, key).done(dialect.download('y'));
      }
    });

    test('is declined like an unknown key from the moment at which it expires', async (t) => {
      const expiresAt = new Date(Date.now() + HOUR_MS);
      const { till, restricted } = await openWith(t, { expiresAt });
      const { clock } = till.testService;
      clock.set(new Date(expiresAt.getTime() - 1));
      await restricted.done(dialect.list());
      clock.advance(1);
      const { body, headers } = await restricted.refused(dialect, '01', dialect.list());
      assert.deepEqual(body, { statusCode: '01', message: 'Unauthorized', data: null });
      assert.equal(headers.get('www-authenticate'), 'Basic');
      await till.done(dialect.list());
    });

    test('is accepted only from its networks, by the address of the socket', async (t) => {
      const { till, operator, restricted } = await openWith(t, { networks: ['10.0.0.0/8', '2001:db8::/32'] });
      const request = dialect.list();
      const { body } = await restricted.refused(dialect, '01', request);
      assert.deepEqual(body, { statusCode: '01', message: 'Unauthorized', data: null });
      // Headers of the caller are ignored.
      const { authorization } = restricted.merchant;
      const forwarded = { authorization, 'x-forwarded-for': '10.0.0.1', forwarded: 'for=10.0.0.1' };
      const response = await fetch(till.testService.baseUrl + request.path, { headers: forwarded });
      assert.equal(response.status, 401);
      const local = withKey(
        till,
        await createKey(operator, till.merchant.id, { networks: ['127.0.0.1/32'] }),
      );
      await local.done(request);
    });
  });
}

describe('the address of a caller', () => {
  test('is read from X-Forwarded-For only behind a trusted proxy', async (t) => {
    const { till, restricted } = await openWith(t, { networks: ['192.0.2.0/24'] });
    const { authorization } = restricted.merchant;
    const statusOf = async (trustedProxies: string[], remoteAddress: string, forwardedFor?: string) => {
      const app = buildServer(till.testService.service, { trustedProxies });
      const headers = { authorization, ...(forwardedFor && { 'x-forwarded-for': forwardedFor }) };
      const { statusCode } = await app.inject({ url: '/api/v2/transactions', remoteAddress, headers });
      await app.close();
      return statusCode;
    };
    assert.equal(await statusOf([], '192.0.2.7'), 200);
    assert.equal(await statusOf([], '10.0.0.1', '192.0.2.7'), 401);
    assert.equal(await statusOf(['10.0.0.0/8'], '10.0.0.1', '192.0.2.7'), 200);
    assert.equal(await statusOf(['10.0.0.0/8'], '10.0.0.1', '192.0.2.7, 10.0.0.9'), 200);
    // The addresses before the last one that is not a trusted proxy come from the caller.
    assert.equal(await statusOf(['10.0.0.0/8'], '10.0.0.1', '192.0.2.7, 203.0.113.5'), 401);
    assert.equal(await statusOf(['10.0.0.0/8'], '203.0.113.5', '192.0.2.7'), 401);
    assert.equal(await statusOf(['10.0.0.0/8'], '10.0.0.1', 'unknown'), 401);
    assert.equal(await statusOf(['10.0.0.0/8'], '10.0.0.1'), 401);
  });
});

describe('a network', () => {
  test('is read from CIDR notation of IPv4 and IPv6, or from one address', () => {
    assert.equal(readNetwork('10.0.0.0/8'), '10.0.0.0/8');
    assert.equal(readNetwork('192.0.2.1'), '192.0.2.1/32');
    assert.equal(readNetwork('2001:DB8::/32'), '2001:db8::/32');
    assert.equal(readNetwork('0.0.0.0/0'), '0.0.0.0/0');
    for (const text of [
      '',
      '10.0.0.0/33',
      '10.0.0/8',
      '::/129',
      'example.com',
      '10.0.0.0/',
      '1.2.3.4/8/8',
      '::ffff:1.2.3.4',
    ])
      assert.equal(readNetwork(text), undefined, text);
  });

  test('contains its addresses in every notation, and no others', () => {
    const contains = containing(['10.0.0.0/8', '192.0.2.1/32', '2001:db8::/32']);
    for (const address of ['10.255.255.255', '192.0.2.1', '::ffff:10.1.2.3', '2001:db8:ffff::1'])
      assert.ok(contains(address), address);
    for (const address of [
      '11.0.0.0',
      '192.0.2.2',
      '::ffff:11.0.0.1',
      '2001:db9::1',
      '::1',
      '',
      'x',
      undefined,
      '10.0.0.1, 1.1.1.1',
    ])
      assert.ok(!contains(address), address);
    assert.ok(containing(['0.0.0.0/0'])('203.0.113.9'));
    assert.ok(!containing(['0.0.0.0/0'])('::1'));
  });
});

describe('the rotation of an API key', () => {
  test('creates a key with the same restrictions, and ends the old one after the overlap', async (t) => {
    const [dialect] = DIALECTS;
    const { till, operator, key, restricted } = await openWith(t, {
      scopes: ['balance'],
      networks: ['127.0.0.0/8'],
    });
    const { service, clock } = till.testService;
    clock.set(new Date());
    const made = await apiKeys.rotate.run(operator, { keyId: key.keyId, overlap: '1h' });
    const renewed = withKey(till, made as NewKey);
    await restricted.done(dialect.list());
    await renewed.done(dialect.list());
    await renewed.refused(dialect, '03', dialect.generate('y', 1, 1));
    clock.advance(HOUR_MS);
    await restricted.refused(dialect, '01', dialect.list());
    await renewed.done(dialect.list());
    const info = await findKeyInfo(service, made.keyId);
    assert.deepEqual([info?.scopes, info?.networks, info?.expiresAt], [['balance'], ['127.0.0.0/8'], null]);
    assert.equal((await findKeyInfo(service, key.keyId))?.rotatedTo, made.keyId);
    await assert.rejects(apiKeys.rotate.run(operator, { keyId: key.keyId, overlap: '1h' }), /ended/);
  });

  test('never extends the expiry of the old key, and happens once', async (t) => {
    const expiresAt = new Date(Date.now() + HOUR_MS);
    const { operator, key } = await openWith(t, { expiresAt });
    const made = await apiKeys.rotate.run(operator, { keyId: key.keyId, overlap: '24h' });
    assert.deepEqual(made?.until, expiresAt);
    await assert.rejects(
      apiKeys.rotate.run(operator, { keyId: key.keyId, overlap: '1h' }),
      new RegExp(`${made?.keyId} takes its place`),
    );
    await assert.rejects(
      apiKeys.rotate.run(operator, { keyId: 'key_unknown', overlap: '1h' }),
      /there is no key/,
    );
  });
});

test('a new key with a scope that the merchant lacks or a past expiry is refused', async (t) => {
  const till = await Till.open(t, { permit: [] });
  const operator = asOperator(till.testService.service);
  const { id } = till.merchant;
  await assert.rejects(
    createKey(operator, id, { scopes: ['update-redemption'] }),
    /no permission update-redemption/,
  );
  await assert.rejects(createKey(operator, id, { expiresAt: new Date() }), /expired/);
  assert.equal((await listKeys(operator.service, id)).length, 1);
});

test('a merchant has at most 100 keys, and gets at most 100 in a day', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const operator = asOperator(service);
  const { id, keyId } = till.merchant;
  const create = async () => (await createKey(operator, id)).keyId;
  const made = await Promise.all(Array.from({ length: 99 }, create));
  await assert.rejects(create(), /at most 100 keys/);
  // A new key for each that was blocked would permit any number of guesses.
  await apiKeys.revoke.run(operator, { keyId });
  await assert.rejects(create(), /as many in 24 hours/);
  clock.advance(24 * HOUR_MS + 1);
  await create();
  await assert.rejects(create(), /at most 100 keys/);
  await apiKeys.revoke.run(operator, { keyId: made[0] as string });
  await create();
});

test('the last use of a key is stored when calls are flushed', async (t) => {
  const [dialect] = DIALECTS;
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const lastUse = async () => {
    await flushCalls(service);
    return (await findKeyInfo(service, till.merchant.keyId))?.lastUsedAt ?? null;
  };
  assert.equal(await lastUse(), null);
  const at = new Date('2030-01-15T12:00:00Z');
  clock.set(at);
  await till.done(dialect.list());
  assert.deepEqual(await lastUse(), at);
  clock.advance(48 * HOUR_MS);
  assert.deepEqual(await lastUse(), at);
  await till.done(dialect.list());
  assert.deepEqual(await lastUse(), clock.now());
});
