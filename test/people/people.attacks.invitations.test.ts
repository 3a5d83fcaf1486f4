import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { Browser, codeOf, enrolled, invited, PASSWORD, reset } from '../support/browser.ts';
import { type ListeningService, testService } from '../support/harness.ts';

/** Attacks on invitations: a link that leaked, was replaced, or was accepted already. */

/** Opens a link in a browser. @returns the secret that it is offered for the authenticator app */
async function open({ baseUrl }: ListeningService, token: string) {
  const browser = new Browser(baseUrl);
  const opened = await browser.post('/enrollment', { token });
  assert.equal(opened.status, 200, opened.text);
  return { browser, secret: String(opened.body.totp.secret) };
}

const complete = (browser: Browser, token: string, totp: string) =>
  browser.post('/enrollment/complete', { token, name: 'Ada', password: PASSWORD, totp });

test('a link that was replaced has shown nothing that the new one accepts', async (t) => {
  const listening = await testService(t);
  const { service, clock } = listening;
  const leaked = (await invited(service, {})).token;
  const thief = await open(listening, leaked);
  const { token } = await invited(service, {});
  assert.equal((await thief.browser.post('/enrollment', { token: leaked })).status, 401);
  assert.equal((await complete(thief.browser, leaked, codeOf(thief.secret, clock.now()))).status, 401);
  const person = await open(listening, token);
  assert.notEqual(person.secret, thief.secret);
  const guessed = await complete(person.browser, token, codeOf(thief.secret, clock.now()));
  assert.deepEqual([guessed.status, guessed.body.errors[0].field], [400, 'totp']);
  assert.equal((await complete(person.browser, token, codeOf(person.secret, clock.now()))).status, 200);
});

test('a thief who opened the link before its person does not know the second factor', async (t) => {
  const listening = await testService(t);
  const { token } = await invited(listening.service, {});
  const thief = await open(listening, token);
  const person = await open(listening, token);
  assert.notEqual(person.secret, thief.secret);
  // A page that is loaded again shows the same code.
  const again = await person.browser.post('/enrollment', { token });
  assert.equal(again.body.totp.secret, person.secret);
  const totp = codeOf(person.secret, listening.clock.now());
  assert.equal((await complete(person.browser, token, totp)).status, 200);
  listening.clock.advance(30_000);
  const browser = new Browser(listening.baseUrl);
  await browser.post('/session', { email: 'ada@example.com', password: PASSWORD });
  const stolen = codeOf(thief.secret, listening.clock.now());
  assert.equal((await browser.post('/session', { totp: stolen })).status, 401);
});

test('the code with which a person enrolled does not sign in', async (t) => {
  const listening = await testService(t);
  const { token } = await invited(listening.service, {});
  const { browser, secret } = await open(listening, token);
  const totp = codeOf(secret, listening.clock.now());
  assert.equal((await complete(browser, token, totp)).status, 200);
  const thief = new Browser(listening.baseUrl);
  await thief.post('/session', { email: 'ada@example.com', password: PASSWORD });
  assert.equal((await thief.post('/session', { totp })).status, 401);
});

test('an invitation stores nothing of what its page shows', async (t) => {
  const listening = await testService(t);
  const { token, userId } = await invited(listening.service, {});
  await open(listening, token);
  const { db } = listening.service;
  const rows = await db.query<{ totp_secret: Buffer | null }>(
    sql`select totp_secret from users where id = ${userId}`,
  );
  assert.deepEqual(rows, [{ totp_secret: null }]);
  await assert.rejects(
    db.query(sql`update users set totp_secret = '\\x00' where id = ${userId}`),
    /users_factors_enrolled/,
  );
});

test("the operator's link does not open at the portal's door, nor the other way round", async (t) => {
  const listening = await testService(t);
  const { service, baseUrl } = listening;
  const { id } = await listening.createMerchant();
  const operator = await invited(service, {});
  const merchant = await invited(service, { email: 'b@example.com', roles: ['owner'], merchantId: id });
  const attempt = (door: 'operator' | 'portal', token: string) =>
    new Browser(baseUrl, door).post('/enrollment', { token });
  assert.equal((await attempt('portal', operator.token)).status, 401);
  assert.equal((await attempt('operator', merchant.token)).status, 401);
});

test('of five people who accept one link at once, one gets the account', async (t) => {
  const listening = await testService(t);
  const { token } = await invited(listening.service, {});
  const browsers = await Promise.all(Array.from({ length: 5 }, () => open(listening, token)));
  const now = listening.clock.now();
  const answers = await Promise.all(
    browsers.map(({ browser, secret }) => complete(browser, token, codeOf(secret, now))),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401]);
});

test('a link from before a reset of the second factor stays void after it', async (t) => {
  const listening = await testService(t);
  const first = await invited(listening.service, {});
  const { person } = await enrolled(listening);
  const { token } = await reset(listening.service, person.id);
  const browser = new Browser(listening.baseUrl);
  assert.equal((await browser.post('/enrollment', { token: first.token })).status, 401);
  assert.equal((await browser.post('/enrollment', { token })).status, 200);
});
