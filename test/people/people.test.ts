import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildServer } from '../../src/http/server.ts';
import { DEMO_OWNER, inviteDemoPerson } from '../../src/people/demo.ts';
import { accept, Browser, codeOf, enrolled, invited, PASSWORD, signIn } from '../support/browser.ts';
import { asOperator, testService } from '../support/harness.ts';

const COOKIE = /^__Host-scrip_console=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/;

test('a person enrolls by a link, signs in with password and code, and signs out', async (t) => {
  const listening = await testService(t);
  const { person, browser } = await enrolled(listening, { roles: ['support', 'finance'] });
  const { body } = await browser.get('/session');
  assert.deepEqual(body.user, {
    id: String(person.id),
    email: 'ada@example.com',
    name: 'Ada Lovelace',
    roles: ['finance', 'support'],
    merchantId: null,
    merchantName: null,
    factors: ['totp'],
    singleSignOn: false,
  });
  assert.equal(person.recoveryCodes.length, 10);
  const other = await signIn(listening, person);
  const sessions = await other.get('/sessions');
  assert.deepEqual(
    sessions.body.items.map(({ current }: { current: boolean }) => current),
    [true, false],
  );
  assert.equal((await other.send('DELETE', '/session')).status, 204);
  assert.deepEqual([...other.cookies.keys()], [`__Host-scrip_console_device_${person.id}`]);
  assert.equal((await other.get('/session')).status, 401);
  assert.equal((await browser.get('/session')).status, 200);
});

test('the session cookie is bound to the host and to HTTPS, and hidden from scripts', async (t) => {
  const listening = await testService(t);
  const { person } = await enrolled(listening);
  const browser = new Browser(listening.baseUrl);
  await browser.post('/session', { email: person.email, password: PASSWORD });
  const { headers } = await browser.post('/session', { totp: person.code(listening.clock.now()) });
  assert.ok(headers.getSetCookie().some((each) => COOKIE.test(each)));
});

test('an invitation is valid once, and for 72 hours', async (t) => {
  const listening = await testService(t);
  const { baseUrl, clock, service } = listening;
  const { token } = await invited(service, {});
  await accept(listening, token);
  const open = (link: string) => new Browser(baseUrl).post('/enrollment', { token: link });
  assert.equal((await open(token)).status, 401);
  const late = await invited(service, { email: 'bob@example.com' });
  clock.advance(72 * 3_600_000 - 1_000);
  assert.equal((await open(late.token)).status, 200);
  clock.advance(1_000);
  assert.equal((await open(late.token)).status, 401);
});

test('a password that is short or easy to guess is refused', async (t) => {
  const { baseUrl, clock, service } = await testService(t);
  const { token } = await invited(service, {});
  const browser = new Browser(baseUrl);
  const { secret } = (await browser.post('/enrollment', { token })).body.totp;
  const wrong = [
    ...['short', 'Qwerty123456', 'aaaaaaaaaaaaaa', '𝒶𝒷𝒸𝒹𝑒𝒻'],
    // Words of the account and of the service, with what people add to them.
    ...['ADA@example.com', 'Ada-2026-Ada!!', 'Scrip2026!scrip', 'example.com1234', 'lovelace-voucher'],
  ];
  for (const password of wrong) {
    const totp = codeOf(secret, clock.now());
    const { status, body } = await browser.post('/enrollment/complete', {
      token,
      name: 'Ada Lovelace',
      password,
      totp,
    });
    assert.deepEqual([status, body.errors?.[0]?.field], [400, 'password'], password);
  }
  const totp = codeOf(secret, clock.now());
  const fine = { token, name: 'Ada Lovelace', password: 'a prescription for lovelace', totp };
  assert.equal((await browser.post('/enrollment/complete', fine)).status, 200);
});

test('a recovery code signs in once', async (t) => {
  const listening = await testService(t);
  const { person } = await enrolled(listening);
  const attempt = async () => {
    const browser = new Browser(listening.baseUrl);
    await browser.post('/session', { email: person.email, password: PASSWORD });
    const [recoveryCode = ''] = person.recoveryCodes;
    return (await browser.post('/session', { recoveryCode: recoveryCode.toUpperCase().replaceAll('-', ' ') }))
      .status;
  };
  assert.equal(await attempt(), 200);
  assert.equal(await attempt(), 401);
});

test('a session ends after 20 idle minutes (60 in the portal), and after 12 hours in any case', async (t) => {
  const listening = await testService(t);
  const { clock } = listening;
  const { browser } = await enrolled(listening);
  const merchant = await listening.createMerchant();
  const clerk = (
    await enrolled(listening, { email: 'bob@example.com', roles: ['viewer'], merchantId: merchant.id })
  ).browser;
  const minutes = (count: number) => clock.advance(count * 60_000);
  minutes(15);
  assert.equal((await browser.get('/session')).status, 200);
  minutes(21);
  assert.equal((await browser.get('/session')).status, 401);
  assert.equal((await clerk.get('/session')).status, 200);
  for (let hour = 0; hour < 11; hour++) {
    minutes(55);
    assert.equal((await clerk.get('/session')).status, 200);
  }
  minutes(30);
  assert.equal((await clerk.get('/session')).status, 200);
  minutes(59);
  assert.equal((await clerk.get('/session')).status, 401);
});

test('what an open page reads by itself does not restart the idle time of a session', async (t) => {
  const listening = await testService(t);
  const { browser } = await enrolled(listening);
  const own = { 'x-scrip-request': 'background' };
  for (const path of ['/session', '/merchants', '/session']) {
    listening.clock.advance(6 * 60_000);
    assert.equal((await browser.get(path, own)).status, 200);
  }
  listening.clock.advance(6 * 60_000);
  assert.equal((await browser.get('/session', own)).status, 401);
});

test('a session gets a new ID after each second factor, and the old ID is refused', async (t) => {
  const listening = await testService(t);
  const { clock } = listening;
  const { person, browser } = await enrolled(listening);
  const stolen = new Browser(listening.baseUrl);
  for (const [name, value] of browser.cookies) stolen.cookies.set(name, value);
  assert.equal((await stolen.get('/session')).status, 200);
  clock.advance(5 * 60_000);
  assert.equal((await browser.get('/session')).body.steppedUpUntil, null);
  const { status, body } = await browser.post('/session/step-up', { totp: person.code(clock.now()) });
  assert.equal(status, 200);
  assert.equal(Date.parse(body.steppedUpUntil) - clock.now().getTime() > 290_000, true);
  assert.equal((await browser.get('/session')).status, 200);
  assert.equal((await stolen.get('/session')).status, 401);
});

test('an operation needs a second factor of the last five minutes, which a step-up renews', async (t) => {
  const listening = await testService(t);
  const { person, browser } = await enrolled(listening);
  const invite = (email: string) => browser.post('/users', { email, roles: ['support'] });
  assert.equal((await invite('bob@example.com')).status, 201);
  listening.clock.advance(5 * 60_000);
  const refused = await invite('eve@example.com');
  assert.deepEqual([refused.status, refused.body.code], [403, 'step-up-required']);
  await browser.post('/session/step-up', { totp: person.code(listening.clock.now()) });
  assert.equal((await invite('eve@example.com')).status, 201);
});

test('the people of a merchant sign in to the portal, but not to the console', async (t) => {
  const listening = await testService(t);
  const merchant = await listening.createMerchant();
  const { person } = await enrolled(listening, { roles: ['viewer'], merchantId: merchant.id });
  const elsewhere = new Browser(listening.baseUrl);
  const wrong = await elsewhere.post('/session', { email: person.email, password: PASSWORD });
  assert.deepEqual([wrong.status, wrong.body.code], [401, 'unauthorized']);
  const portal = await signIn(listening, person, 'portal');
  const { user } = (await portal.get('/session')).body;
  assert.deepEqual([user.merchantId, user.merchantName], [String(merchant.id), 'Test']);
  const [[, token] = []] = portal.cookies;
  elsewhere.cookies.set('__Host-scrip_console', String(token));
  assert.equal((await elsewhere.get('/session')).status, 401);
  assert.equal((await elsewhere.get('/merchants')).status, 401);
});

test('the owner of the demo signs in once by a link, from this machine only', async (t) => {
  const { baseUrl, service, clock } = await testService(t);
  const first = await inviteDemoPerson(asOperator(service), DEMO_OWNER);
  const link = await inviteDemoPerson(asOperator(service), DEMO_OWNER);
  const answers = await Promise.all(
    [first, link, link].map((each) => new Browser(baseUrl).post('/session', { link: each })),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401]);
  const proxied = buildServer(service, { trustedProxies: ['127.0.0.1'] });
  t.after(() => proxied.close());
  const browser = new Browser(await proxied.listen({ host: '127.0.0.1', port: 0 }));
  const third = await inviteDemoPerson(asOperator(service), DEMO_OWNER);
  assert.equal(
    (await browser.post('/session', { link: third }, { 'x-forwarded-for': '192.0.2.1' })).status,
    401,
  );
  assert.equal((await browser.post('/session', { link: third })).status, 200);
  clock.advance(600_000);
  const { body: session } = await browser.get('/session');
  assert.equal(
    session.steppedUpUntil,
    session.expiresAt,
    'the owner of the demo has no second factor to renew',
  );
  clock.advance(3_000_000);
  const late = await inviteDemoPerson(asOperator(service), DEMO_OWNER);
  clock.advance(3_600_000);
  assert.equal((await browser.post('/session', { link: late })).status, 401);
  const password = await browser.post('/session', { email: 'owner@demo.invalid', password: PASSWORD });
  assert.equal(password.status, 401);
});
