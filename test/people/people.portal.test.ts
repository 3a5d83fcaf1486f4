import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
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
    for (const verb of ['disable', 'enable', 'erase', 'reset-2fa', 'end-sessions'])
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

test('a person who has left is erased: nothing but the audit keeps the name and the address', async (t) => {
  const listening = await testService(t);
  const { service } = listening;
  const { id: merchantId } = await listening.createMerchant();
  const owner = await enrolled(listening, { merchantId });
  const leaver = await enrolled(listening, { merchantId, email: 'lea@example.com', roles: ['viewer'] });
  const path = `/users/${leaver.person.id}`;
  assert.equal((await owner.browser.post(`${path}/erase`)).body.code, 'conflict');
  // This answer is kept under its Idempotency-Key.
  assert.equal((await owner.browser.post(`${path}/disable`)).body.email, 'lea@example.com');
  const erased = await owner.browser.post(`${path}/erase`);
  assert.equal(erased.body.state, 'erased', erased.text);
  assert.equal((await owner.browser.post(`${path}/erase`)).body.state, 'erased');
  for (const verb of ['enable', 'reset-2fa'])
    assert.equal((await owner.browser.post(`${path}/${verb}`)).body.code, 'conflict', verb);
  assert.equal((await leaver.browser.get('/merchant')).status, 401);
  const tables = await service.db.query<{ name: string; rows: number }>(sql`
select name, rows from (
  select 'users' as name, count(*)::integer as rows from users u where u::text like '%lea@example%'
  union all select 'credentials', count(*)::integer from users
    where id = ${leaver.person.id} and (password_hash is not null or totp_secret is not null)
  union all select 'recovery_codes', count(*)::integer from recovery_codes where user_id = ${leaver.person.id}
  union all select 'operator_requests', count(*)::integer from operator_requests where output like '%lea@%'
  union all select 'sessions', count(*)::integer from sessions where user_id = ${leaver.person.id}
) kept`);
  assert.deepEqual(
    tables.filter(({ rows }) => rows > 0),
    [],
  );
});

test('nobody is invited with an address that an erased person gets', async (t) => {
  const listening = await testService(t);
  const { id: merchantId } = await listening.createMerchant();
  const { browser } = await enrolled(listening, { merchantId });
  const leaver = await enrolled(listening, { merchantId, email: 'lea@example.com', roles: ['viewer'] });
  const path = `/users/${leaver.person.id}`;
  const email = `User-${leaver.person.id}@Erased.invalid`;
  const blocking = await browser.post('/users', { email, roles: ['cashier'] });
  assert.deepEqual([blocking.status, blocking.body.code], [400, 'invalid'], blocking.text);
  await browser.post(`${path}/disable`);
  const erased = await browser.post(`${path}/erase`);
  assert.equal(erased.body.state, 'erased', erased.text);
});
