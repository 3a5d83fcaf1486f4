import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { users } from '../../src/people/users.ts';
import { Browser, invited } from '../support/browser.ts';
import { asOperator } from '../support/harness.ts';
import { scene } from '../support/identity-provider.ts';

test('an invited person signs in at the provider, and is then known by issuer and subject', async (t) => {
  const { listening, account, signIn } = await scene(t);
  await invited(listening.service, {});
  const first = await signIn();
  assert.equal(first.status, 200, first.text);
  assert.match(first.text, /url=\/console\/sign-in#signed-in"/);
  const { body } = await first.browser.get('/session');
  assert.deepEqual([body.user.email, body.user.roles], ['ada@example.com', ['owner']]);
  // The address may change afterwards.
  account.email = 'countess@example.com';
  assert.equal((await (await signIn()).browser.get('/session')).status, 200);
  account.id = 'account-2';
  account.email = 'ada@example.com';
  const other = await signIn();
  assert.deepEqual([other.status, (await other.browser.get('/session')).status], [401, 401]);
});

test('a person is refused who is not invited, is disabled, or has no verified address', async (t) => {
  const { listening, account, signIn } = await scene(t);
  const refused = async () => {
    const { status, browser, text } = await signIn();
    assert.equal(status, 401);
    assert.match(text, /nobody was invited under this account/);
    assert.equal((await browser.get('/session')).status, 401);
  };
  await refused();
  const { userId } = await invited(listening.service, {});
  account.verified = false;
  await refused();
  account.verified = true;
  const id = String(userId);
  await users.disable.run(asOperator(listening.service), { id });
  await refused();
  await users.enable.run(asOperator(listening.service), { id });
  // Disabling revoked the invitation.
  await refused();
  const merchant = await listening.createMerchant();
  await invited(listening.service, { email: 'eve@example.com', roles: ['owner'], merchantId: merchant.id });
  account.email = 'eve@example.com';
  await refused();
});

test('an invitation at the provider needs a second factor there', async (t) => {
  const { listening, account, signIn } = await scene(t);
  account.amr = ['pwd'];
  await invited(listening.service, {});
  assert.equal((await signIn()).status, 401);
});

test('a callback is accepted once, and unchanged', async (t) => {
  const { listening, callbackPath } = await scene(t);
  await invited(listening.service, {});
  const browser = new Browser(listening.baseUrl);
  const path = (await callbackPath(browser)).replace('/operator/v1', '');
  const answers = [await browser.get(path), await browser.get(path)];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 401],
  );
  // The provider may refuse both of two simultaneous ones, since it gives its code away once.
  const twice = new Browser(listening.baseUrl);
  const other = (await callbackPath(twice)).replace('/operator/v1', '');
  const both = await Promise.all([twice.get(other), twice.get(other)]);
  const accepted = both.filter(({ status }) => status === 200).length;
  assert.ok(accepted <= 1, `${accepted} were accepted`);
  const again = new Browser(listening.baseUrl);
  const changed = (await callbackPath(again))
    .replace('/operator/v1', '')
    .replace(/code=(.)/, (_, first) => (first === 'a' ? 'code=b' : 'code=a'));
  assert.equal((await again.get(changed)).status, 401);
  const [row] = await listening.service.db.query<{ count: bigint }>(
    sql`select count(*) as count from sessions`,
  );
  assert.equal(row?.count, BigInt(1 + accepted));
});

test('a person who signs in at the provider steps up there, by signing in again', async (t) => {
  const { listening, account, signIn, callbackPath, comeBack } = await scene(t);
  await invited(listening.service, {});
  const { browser } = await signIn();
  assert.notEqual((await browser.get('/session')).body.steppedUpUntil, null);
  listening.clock.advance(6 * 60_000);
  assert.equal((await browser.get('/session')).body.steppedUpUntil, null);
  assert.equal((await browser.get('/session')).body.user.singleSignOn, true);
  account.authenticatedAt = listening.clock.now();
  const old = new Map(browser.cookies);
  const { status, text } = await comeBack(browser, await callbackPath(browser, '/session/oidc/step-up'));
  assert.equal(status, 200, text);
  assert.match(text, /sign-in#stepped-up/);
  assert.notEqual((await browser.get('/session')).body.steppedUpUntil, null);
  const thief = new Browser(listening.baseUrl);
  for (const [name, value] of old) thief.cookies.set(name, value);
  assert.equal((await thief.get('/session')).status, 401);
  assert.equal((await new Browser(listening.baseUrl).get('/session/oidc/step-up')).status, 401);
});
