import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { Authenticator } from '../support/authenticator.ts';
import { Browser, enrolled, PASSWORD, type Person, signIn } from '../support/browser.ts';
import { type ListeningService, testService } from '../support/harness.ts';

/** A service at the host name localhost: a passkey is bound to a host name. */
async function named(t: TestContext): Promise<ListeningService> {
  const listening = await testService(t);
  return { ...listening, baseUrl: listening.baseUrl.replace('127.0.0.1', 'localhost') };
}

async function withPasskey(t: TestContext) {
  const listening = await named(t);
  const origin = listening.baseUrl;
  const { browser, person } = await enrolled(listening);
  const device = new Authenticator();
  const options = (await browser.post('/account/passkeys/options')).body;
  const response = device.create(options, { origin });
  const added = await browser.post('/account/passkeys', { name: 'Laptop', response });
  assert.equal(added.status, 200, added.text);
  return { listening, origin, browser, person, device };
}

test('a passkey signs in without a password, and serves for a step-up', async (t) => {
  const { listening, origin, browser, device } = await withPasskey(t);
  assert.deepEqual((await browser.get('/session')).body.user.factors, ['totp', 'passkey']);
  const other = new Browser(origin);
  const options = (await other.post('/session/passkey/options')).body;
  assert.deepEqual([options.rpId, options.userVerification], ['localhost', 'required']);
  const passkey = device.get(options, { origin });
  const signedIn = await other.post('/session', { passkey });
  assert.equal(signedIn.status, 200, signedIn.text);
  assert.notEqual(signedIn.body.steppedUpUntil, null);
  // The answer to a challenge is accepted once.
  assert.equal((await other.post('/session', { passkey })).status, 401);
  listening.clock.advance(6 * 60_000);
  assert.equal((await other.post('/account/recovery-codes')).body.code, 'step-up-required');
  const again = (await other.post('/session/step-up/options')).body;
  assert.equal(again.allowCredentials[0].id, device.id);
  const stepped = await other.post('/session/step-up', { passkey: device.get(again, { origin }) });
  assert.equal(stepped.status, 200, stepped.text);
  assert.equal((await other.post('/account/recovery-codes')).body.recoveryCodes.length, 10);
  assert.equal((await other.send('DELETE', `/account/passkeys/${device.id}`)).status, 204);
  const removed = (await browser.post('/session/passkey/options')).body;
  assert.equal((await browser.post('/session', { passkey: device.get(removed, { origin }) })).status, 401);
});

test('what a device says of itself, which nothing signs, is kept only as far as it is known', async (t) => {
  const listening = await named(t);
  const origin = listening.baseUrl;
  const { browser, person } = await enrolled(listening);
  const add = async (name: string, transports: unknown) => {
    const device = new Authenticator();
    const options = (await browser.post('/account/passkeys/options')).body;
    const made = device.create(options, { origin });
    const response = { ...made, response: { ...made.response, transports } };
    return browser.post('/account/passkeys', { name, response });
  };
  for (const transports of [['usb', '\u0000', 7, 'x'.repeat(1_000), 'usb'], { usb: true }, 'usb', null]) {
    const added = await add('Key', transports);
    assert.equal(added.status, 200, added.text);
  }
  for (const name of ['\u0000', 'Lap\u202etop', '']) {
    const refused = await add(name, []);
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid'], refused.text);
  }
  const stored = await listening.service.db.query<{ transports: string[] }>(
    sql`select transports from passkeys where user_id = ${person.id} order by created_at, id`,
  );
  assert.deepEqual(stored.map(({ transports }) => transports.join()).sort(), ['', '', '', 'usb']);
});

test('a passkey is refused if unverified, of another origin, copied, or for another challenge', async (t) => {
  const { origin, device } = await withPasskey(t);
  const attempt = async (behaviour: Parameters<Authenticator['get']>[1], rpId?: string) => {
    const browser = new Browser(origin);
    const options = (await browser.post('/session/passkey/options')).body;
    const passkey = device.get({ ...options, ...(rpId && { rpId }) }, behaviour);
    return (await browser.post('/session', { passkey })).status;
  };
  assert.equal(await attempt({ origin }), 200);
  assert.equal(await attempt({ origin, verified: false }), 401);
  assert.equal(await attempt({ origin: 'https://evil.example' }), 401);
  assert.equal(await attempt({ origin }, 'evil.example'), 401);
  assert.equal(await attempt({ origin, counter: 1 }), 401);
  const thief = new Browser(origin);
  const victim = new Browser(origin);
  const options = (await victim.post('/session/passkey/options')).body;
  await thief.post('/session/passkey/options');
  const stolen = device.get(options, { origin });
  assert.equal((await thief.post('/session', { passkey: stolen })).status, 401);
  assert.equal((await victim.post('/session', { passkey: device.get(options, { origin }) })).status, 200);
  assert.equal((await victim.post('/session', { passkey: {} })).status, 401);
});

test('a passkey signs in while wrong passwords lock the account', async (t) => {
  const { origin, device, person } = await withPasskey(t);
  const browser = new Browser(origin);
  for (let guess = 0; guess < 7; guess++)
    await browser.post('/session', { email: person.email, password: 'wrong horse battery' });
  assert.equal((await browser.post('/session', { email: person.email, password: PASSWORD })).status, 429);
  const options = (await browser.post('/session/passkey/options')).body;
  assert.equal((await browser.post('/session', { passkey: device.get(options, { origin }) })).status, 200);
});

test('a passkey cannot be added at an IP address', async (t) => {
  const listening = await testService(t);
  const { browser } = await enrolled(listening);
  const numbered = await browser.post('/account/passkeys/options');
  assert.deepEqual([numbered.status, numbered.body.code], [409, 'conflict']);
  listening.clock.advance(6 * 60_000);
  assert.equal((await browser.post('/account/passkeys/options')).body.code, 'conflict');
  const response = await browser.post('/account/passkeys', { name: 'x', response: {} });
  assert.ok([401, 403, 409].includes(response.status), response.text);
});

test('a change of password needs the old one and a second factor, and ends the other sessions', async (t) => {
  const listening = await testService(t);
  const { browser, person } = await enrolled(listening);
  const other = await signIn(listening, person);
  const newPassword = 'battery staple horse';
  const wrong = await browser.post('/account/password', { password: 'not this one at all', newPassword });
  assert.deepEqual([wrong.status, wrong.body.errors[0].field], [400, 'password']);
  const weak = await browser.post('/account/password', { password: PASSWORD, newPassword: 'short' });
  assert.deepEqual([weak.status, weak.body.errors[0].field], [400, 'newPassword']);
  assert.equal((await browser.post('/account/password', { password: PASSWORD, newPassword })).status, 204);
  assert.equal((await browser.get('/session')).status, 200);
  assert.equal((await other.get('/session')).status, 401);
  const changed: Person = { ...person, password: newPassword };
  const fresh = await signIn(listening, changed);
  listening.clock.advance(6 * 60_000);
  const late = await fresh.post('/account/password', { password: newPassword, newPassword: PASSWORD });
  assert.deepEqual([late.status, late.body.code], [403, 'step-up-required']);
});
