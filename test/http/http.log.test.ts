import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { buildServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/log.ts';
import { enrolled } from '../support/browser.ts';
import { DIALECTS } from '../support/dialects.ts';
import { testService } from '../support/harness.ts';
import { Till, UNKNOWN } from '../support/till.ts';

test('the access log shows the API key and the transaction id of a call', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  let lines = '';
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines += chunk;
      done();
    },
  });
  const app = buildServer({ ...service, log: createLogger('info', destination) });
  t.after(() => app.close());
  const ask = async ({ method, path, body }: ReturnType<(typeof DIALECTS)[number]['balance']>) => {
    const headers = { authorization: till.merchant.authorization };
    const answer = await app.inject({
      method: method as 'POST',
      url: path,
      headers,
      ...(body ? { payload: body as object } : {}),
    });
    // A line is logged when the response has closed, and written a turn later.
    while (!lines.includes(`"requestId":"${answer.headers['x-request-id']}"`)) await turn();
    const line = JSON.parse(lines.trim().split('\n').at(-1) as string);
    const { keyId, id } = till.merchant;
    assert.deepEqual([line.keyId, line.merchantId, line.address], [keyId, id, '127.0.0.1']);
    return { data: answer.json().data, logged: line.transactionId };
  };
  for (const [index, dialect] of DIALECTS.entries()) {
    const generated = await ask(dialect.generate(`order-${index}`, 1, 25));
    assert.ok(generated.logged);
    assert.equal(generated.logged, generated.data.transactionId);
    const sold = await ask(dialect.redeem(generated.data.vouchers[0], 5, `sale-${index}`));
    assert.ok(sold.logged);
    assert.equal(sold.logged, sold.data.transactionId);
    const update = { method: 'POST', path: '/merchant-client/v2/redemptions/update' } as const;
    const updated = await ask({ ...update, body: { reference: `sale-${index}`, amountUsed: 3 } });
    assert.ok(updated.logged);
    assert.equal(updated.logged, updated.data.cancellationTransaction.transactionId);
    assert.equal((await ask(dialect.balance(UNKNOWN))).logged, undefined);
  }
  assert.ok(!lines.includes('sale-0') && !lines.includes('order-0'));
});

test('the access log names the person or the token of the operator API and the portal, and the address', async (t) => {
  const listening = await testService(t);
  const lines: string[] = [];
  const log = createLogger('info', { write: (text) => void lines.push(text) });
  const app = buildServer({ ...listening.service, log }, { trustedProxies: ['127.0.0.1/32'] });
  t.after(() => app.close());
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const scene = { ...listening, baseUrl };
  const { id: merchantId } = await listening.createMerchant();
  const { person, browser } = await enrolled(scene);
  const portal = await enrolled(scene, { email: 'bob@example.com', roles: ['owner'], merchantId });
  browser.address = portal.browser.address = '192.0.2.7';
  const lineOf = async (answer: Promise<{ headers: Headers }>) => {
    const id = (await answer).headers.get('x-request-id') ?? '';
    while (!lines.join('').includes(id)) await turn();
    const [line = ''] = lines
      .join('')
      .split('\n')
      .filter((each) => each.includes(id));
    const { principal, merchantId: merchant, address, route } = JSON.parse(line);
    return { principal, merchant, address, route };
  };
  const { body } = await browser.post('/tokens', { roles: ['support'], reason: 'x' });
  const address = '192.0.2.7';
  const own = { principal: `user ${person.id}`, merchant: undefined, address };
  assert.deepEqual(await lineOf(browser.get('/session')), { ...own, route: '/operator/v1/session' });
  assert.deepEqual(await lineOf(browser.get('/merchants')), { ...own, route: '/operator/v1/merchants' });
  assert.deepEqual(await lineOf(portal.browser.get('/merchant')), {
    principal: `user ${portal.person.id}`,
    merchant: merchantId,
    address,
    route: '/portal/v1/merchant',
  });
  const headers = { authorization: `Bearer ${body.token}`, 'x-forwarded-for': '192.0.2.8' };
  assert.deepEqual(await lineOf(fetch(`${baseUrl}/operator/v1/merchants`, { headers })), {
    principal: `token ${body.id}`,
    merchant: undefined,
    address: '192.0.2.8',
    route: '/operator/v1/merchants',
  });
  assert.deepEqual(await lineOf(fetch(`${baseUrl}/operator/v1/merchants`)), {
    principal: undefined,
    merchant: undefined,
    address: '127.0.0.1',
    route: '/operator/v1/merchants',
  });
});
