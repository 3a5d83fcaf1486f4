import assert from 'node:assert/strict';
import { test } from 'node:test';
import { enrolled, invited } from '../support/browser.ts';
import { testService } from '../support/harness.ts';

test("a merchant's owner manages the people of that merchant, and cannot see or change others", async (t) => {
  const listening = await testService(t);
  const { service } = listening;
  const [own, other] = [await listening.createMerchant(), await listening.createMerchant()];
  const { browser } = await enrolled(listening, { merchantId: own.id });
  const foreign = await invited(service, { email: 'b@example.com', roles: ['owner'], merchantId: other.id });
  const operator = await invited(service, { email: 'c@example.com', roles: ['owner'] });
  const made = await browser.post('/users', { email: 'bob@example.com', roles: ['cashier'] });
  assert.equal(made.status, 201, made.text);
  assert.match(made.body.link, /^\/portal\/enroll#/);
  const team = (await browser.get('/users')).body.items as { email: string; merchantId: string }[];
  assert.deepEqual(
    team.map(({ email, merchantId }) => [email, merchantId]),
    ['ada@example.com', 'bob@example.com'].map((email) => [email, String(own.id)]),
  );
  for (const { userId } of [foreign, operator]) {
    for (const verb of ['disable', 'enable', 'reset-2fa', 'end-sessions'])
      assert.equal((await browser.post(`/users/${userId}/${verb}`)).status, 404, verb);
    const roles = await browser.post(`/users/${userId}/set-roles`, { roles: ['viewer'] });
    assert.equal(roles.status, 404, roles.text);
  }
  const elsewhere = { email: 'eve@example.com', roles: ['viewer'], merchantId: String(other.id) };
  assert.equal((await browser.post('/users', elsewhere)).status, 400);
  assert.equal((await browser.post('/users', { email: 'eve@example.com', roles: ['auditor'] })).status, 400);
  const disabled = await browser.post(`/users/${made.body.id}/disable`);
  assert.equal(disabled.body.state, 'disabled');
});
