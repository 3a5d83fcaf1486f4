import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { Browser, codeOf, enrolled, invited, PASSWORD } from '../support/browser.ts';
import { CLIENT_SECRET, type Forgery, forger, signed } from '../support/forger.ts';
import { scene } from '../support/identity-provider.ts';

/** Attacks on single sign-on: forged answers of the provider, and accounts that are taken over by it. */

const HOURS = 3_600_000;

const seconds = (fromNow: number) => Math.floor(Date.now() / 1_000) + fromNow;

/** Changes claims; undefined removes one. */
const claiming =
  (change: () => Record<string, unknown>): Forgery =>
  ({ claims }) => {
    Object.assign(claims, change());
    return undefined;
  };

const FORGERIES: Readonly<Record<string, Forgery>> = {
  'signed by a strange key': (parts, { foreign }) => signed({ ...parts, key: foreign }),
  'not signed': ({ claims, header, key }) =>
    signed({ claims, header: { ...header, alg: 'none' }, key }).replace(/[^.]*$/, ''),
  'signed with the public key as a secret': ({ claims, header }, { publicPem }) =>
    signed({ claims, header: { ...header, alg: 'HS256' }, key: createSecretKey(Buffer.from(publicPem)) }),
  'signed with the secret of the client': ({ claims, header }) =>
    signed({ claims, header: { ...header, alg: 'HS256' }, key: createSecretKey(Buffer.from(CLIENT_SECRET)) }),
  'of another issuer': claiming(() => ({ iss: 'https://evil.example' })),
  'for another client': claiming(() => ({ aud: 'somebody else' })),
  'for several clients, and issued to another one': claiming(() => ({ aud: ['scrip', 'e'], azp: 'e' })),
  'with another nonce': claiming(() => ({ nonce: 'another one' })),
  'without a nonce': claiming(() => ({ nonce: undefined })),
  'that has expired': claiming(() => ({ exp: seconds(-600) })),
  'of the future': claiming(() => ({ nbf: seconds(6_000) })),
  'without the time of the sign-in': claiming(() => ({ auth_time: undefined })),
  'of a sign-in yesterday': claiming(() => ({ auth_time: seconds(-24 * 3_600) })),
  'of a sign-in in the future': claiming(() => ({ auth_time: seconds(3_600) })),
  'with an address that is not verified': claiming(() => ({ email_verified: false })),
  'with an address that is verified as text': claiming(() => ({ email_verified: 'true' })),
};

test('an ID token is refused that is forged, stale, or for somebody else', async (t) => {
  const { start, forging } = forger();
  const { listening, signIn } = await scene(t, start);
  await invited(listening.service, {});
  for (const [name, forge] of Object.entries(FORGERIES)) {
    forging.forge = forge;
    const { status, browser } = await signIn();
    assert.equal(status, 401, name);
    assert.equal((await browser.get('/session')).status, 401, name);
  }
  forging.forge = () => undefined;
  const { status, text } = await signIn();
  assert.equal(status, 200, text);
});

test('the answer of another provider is refused (mix-up)', async (t) => {
  const { start } = forger();
  const { listening, callbackPath, comeBack } = await scene(t, start);
  await invited(listening.service, {});
  const browser = new Browser(listening.baseUrl);
  const path = await callbackPath(browser);
  assert.equal(
    (await comeBack(browser, path.replace(/iss=[^&]+/, 'iss=https%3A%2F%2Fevil.example'))).status,
    401,
  );
});

test('a callback without the cookie, or with the cookie of another browser, signs nobody in', async (t) => {
  const { listening, callbackPath, comeBack } = await scene(t);
  await invited(listening.service, {});
  const attacker = new Browser(listening.baseUrl);
  const path = await callbackPath(attacker);
  const victim = new Browser(listening.baseUrl);
  assert.equal((await comeBack(victim, path)).status, 401);
  await callbackPath(victim);
  assert.equal((await comeBack(victim, path)).status, 401);
  const wrong = new Browser(listening.baseUrl);
  const own = await callbackPath(wrong);
  assert.equal((await comeBack(wrong, own.replace(/state=[^&]+/, 'state=other'))).status, 401);
});

test('a sign-in at the provider hours ago is no fresh second factor', async (t) => {
  const { listening, account, signIn } = await scene(t);
  await invited(listening.service, {});
  account.authenticatedAt = new Date(Date.now() - 11 * HOURS);
  const { browser, status, text } = await signIn();
  assert.equal(status, 200, text);
  assert.equal((await browser.get('/session')).body.steppedUpUntil, null);
  const token = await browser.post('/tokens', { roles: ['auditor'], name: 'x' });
  assert.deepEqual([token.status, token.body.code], [403, 'step-up-required']);
});

test('an account at the provider is bound only after the second factor', async (t) => {
  const { listening, account, signIn } = await scene(t);
  const { person } = await enrolled(listening);
  account.amr = ['pwd'];
  account.id = 'an account of somebody else';
  const stranger = await signIn();
  assert.match(stranger.text, /second-factor/);
  assert.equal((await stranger.browser.post('/session', { totp: '000000' })).status, 401);
  account.id = 'the account of the person';
  const { browser } = await signIn();
  const totp = person.code(listening.clock.now());
  assert.equal((await browser.post('/session', { totp })).status, 200);
  // The first one, which never gave the code, is not the account of this person any more.
  account.id = 'an account of somebody else';
  assert.equal((await signIn()).status, 401);
});

test('an account in use is bound only after its own second factor, whatever the provider asked for', async (t) => {
  const { listening, signIn } = await scene(t);
  const { person } = await enrolled(listening);
  const { browser, text } = await signIn();
  assert.match(text, /second-factor/);
  assert.equal((await browser.get('/session')).status, 401);
  const totp = person.code(listening.clock.now());
  assert.equal((await browser.post('/session', { totp })).status, 200);
  assert.equal((await (await signIn()).browser.get('/session')).status, 200);
});

test('an invitation that was accepted by single sign-on opens for nobody else', async (t) => {
  const { listening, signIn } = await scene(t);
  const { token } = await invited(listening.service, {});
  const own = (await signIn()).browser;
  const thief = new Browser(listening.baseUrl);
  assert.equal((await thief.post('/enrollment', { token })).status, 401);
  const taken = { token, name: 'Eve', password: PASSWORD, totp: '000000' };
  assert.equal((await thief.post('/enrollment/complete', taken)).status, 401);
  assert.equal((await own.get('/session')).status, 200);
});

test('the database keeps no open link for an account that is in use or disabled', async (t) => {
  const { listening, signIn } = await scene(t);
  const { db } = listening.service;
  const { userId } = await invited(listening.service, {});
  await signIn();
  const reopen = sql`
update users set invitation_hash = '\\x00', invitation_expires_at = now() + interval '1 hour'
where id = ${userId}`;
  await assert.rejects(db.query(reopen), /users_invitation_open/);
  await db.query(sql`update users set enrolled_at = null, oidc_issuer = null, oidc_subject = null,
    disabled_at = now() where id = ${userId}`);
  await assert.rejects(db.query(reopen), /users_invitation_open/);
});

test('an invitation is accepted by the link or by the provider, not by both at once', async (t) => {
  const { listening, callbackPath, comeBack } = await scene(t);
  const { token } = await invited(listening.service, {});
  const link = new Browser(listening.baseUrl);
  const { secret } = (await link.post('/enrollment', { token })).body.totp;
  const provider = new Browser(listening.baseUrl);
  const path = await callbackPath(provider);
  const body = { token, name: 'Ada', password: PASSWORD, totp: codeOf(secret, listening.clock.now()) };
  await Promise.all([link.post('/enrollment/complete', body), comeBack(provider, path)]);
  const sessions = await Promise.all([link, provider].map((each) => each.get('/session')));
  assert.deepEqual(sessions.map(({ status }) => status).sort(), [200, 401]);
});

test('a step-up at the provider needs a sign-in since then, a second factor, and the same account', async (t) => {
  const { listening, account, signIn, callbackPath, comeBack } = await scene(t);
  await invited(listening.service, {});
  await invited(listening.service, { email: 'eve@example.com' });
  const { browser } = await signIn();
  Object.assign(account, { id: 'account-2', email: 'eve@example.com' });
  assert.equal((await signIn()).status, 200);
  listening.clock.advance(6 * 60_000);
  const attempt = async (changed: Partial<typeof account>) => {
    Object.assign(account, { id: 'account-1', email: 'ada@example.com', amr: ['mfa'] }, changed);
    const { status } = await comeBack(browser, await callbackPath(browser, '/session/oidc/step-up'));
    const { steppedUpUntil } = (await browser.get('/session')).body;
    return [status, steppedUpUntil !== null];
  };
  const now = listening.clock.now();
  const early = new Date(now.getTime() - 2 * 60_000);
  assert.deepEqual(await attempt({ authenticatedAt: early }), [401, false]);
  assert.deepEqual(await attempt({ authenticatedAt: now, amr: ['pwd'] }), [401, false]);
  const other = { id: 'account-2', email: 'eve@example.com', authenticatedAt: now };
  assert.deepEqual(await attempt(other), [401, false]);
  assert.deepEqual(await attempt({ authenticatedAt: now }), [200, true]);
});
