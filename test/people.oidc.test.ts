import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { Provider } from 'oidc-provider';
import { freePort } from '../soak/process.ts';
import { sql } from '../src/db/sql.ts';
import { buildServer } from '../src/http/server.ts';
import { setUserDisabled } from '../src/people/users.ts';
import { Browser, enrolled, invited, type Person } from './browser.ts';
import { asOperator, type ListeningService, testService } from './harness.ts';

/** The account that signs in at the identity provider. */
type Account = { id: string; email?: string; verified?: boolean; amr?: string[] };

type Scene = {
  readonly listening: ListeningService;
  readonly account: Account;
  /** Signs in at the provider. @returns the answer of the callback, and the browser */
  signIn(): Promise<{ browser: Browser; status: number; text: string }>;
  /** Signs in at the provider. @returns the path and query that it redirects the browser to */
  callbackPath(browser: Browser): Promise<string>;
};

/** A real provider that signs the account in without a password. */
async function startProvider(t: TestContext, redirectUri: string, account: Account): Promise<string> {
  const issuer = `http://127.0.0.1:${await freePort()}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'scrip', client_secret: 'a secret of the test', redirect_uris: [redirectUri] }],
    claims: { openid: ['sub', 'amr'], email: ['email', 'email_verified'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    findAccount: (_ctx, sub) => ({
      accountId: sub,
      claims: () => ({
        sub,
        ...(account.email !== undefined && {
          email: account.email,
          email_verified: account.verified ?? true,
        }),
      }),
    }),
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: 'scrip', accountId: oidc.session?.accountId as string });
      grant.addOIDCScope('openid email');
      await grant.save();
      return grant;
    },
  });
  const serve = provider.callback();
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (!request.url?.startsWith('/interaction/')) return void serve(request, response);
    const login = { accountId: account.id, ...(account.amr && { amr: account.amr }) };
    provider.interactionFinished(request, response, { login }).catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), '127.0.0.1', resolve));
  t.after(() => server.close());
  return issuer;
}

async function scene(t: TestContext): Promise<Scene> {
  const started = await testService(t);
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const account: Account = { id: 'account-1', email: 'ada@example.com', amr: ['pwd', 'otp', 'mfa'] };
  const issuer = await startProvider(t, `${baseUrl}/operator/v1/session/oidc/callback`, account);
  const oidc = { issuer, clientId: 'scrip', clientSecret: 'a secret of the test' };
  const app = buildServer(started.service, { publicUrl: baseUrl, oidc });
  t.after(() => app.close());
  await app.listen({ host: '127.0.0.1', port });
  const callbackPath = async (browser: Browser) => {
    const { headers, status, text } = await browser.get('/session/oidc');
    assert.equal(status, 302, text);
    return visitProvider(headers.get('location') ?? '', baseUrl);
  };
  const signIn = async () => {
    const browser = new Browser(baseUrl);
    const path = (await callbackPath(browser)).replace('/operator/v1', '');
    const { status, text } = await browser.get(path, { 'sec-fetch-site': 'cross-site', origin: undefined });
    return { browser, status, text };
  };
  return { listening: { ...started, baseUrl }, account, signIn, callbackPath };
}

/** Follows the provider's redirects with its cookies. @returns the path and query of the callback */
async function visitProvider(from: string, baseUrl: string): Promise<string> {
  const cookies = new Map<string, string>();
  for (let url = from, hops = 0; hops < 10; hops++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    url = new URL(response.headers.get('location') ?? assert.fail(await response.text()), url).href;
    if (url.startsWith(baseUrl)) return url.slice(baseUrl.length);
  }
  return assert.fail('the provider redirects endlessly');
}

test('an invited person signs in at the provider, and is then known by issuer and subject', async (t) => {
  const { listening, account, signIn } = await scene(t);
  await invited(listening.service, {});
  const first = await signIn();
  assert.equal(first.status, 200, first.text);
  assert.match(first.text, /url=\/console\/"/);
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
  await setUserDisabled(asOperator(listening.service), userId, true);
  await refused();
  await setUserDisabled(asOperator(listening.service), userId, false);
  // Disabling revoked the invitation.
  await refused();
  const merchant = await listening.createMerchant();
  await invited(listening.service, { email: 'eve@example.com', roles: ['owner'], merchantId: merchant.id });
  account.email = 'eve@example.com';
  await refused();
});

test('Scrip asks for a second factor if the provider did not', async (t) => {
  const { listening, account, signIn } = await scene(t);
  account.amr = ['pwd'];
  await invited(listening.service, {});
  assert.equal((await signIn()).status, 401);
  const { person }: { person: Person } = await enrolled(listening);
  const { browser, text } = await signIn();
  assert.match(text, /sign-in#second-factor/);
  assert.equal((await browser.get('/session')).status, 401);
  assert.equal((await browser.post('/session', { totp: '000000' })).status, 401);
  const done = await browser.post('/session', { totp: person.code(listening.clock.now()) });
  assert.equal(done.status, 200, done.text);
});

test('a callback is accepted once, unchanged, and from the browser that began the sign-in', async (t) => {
  const { listening, callbackPath } = await scene(t);
  await invited(listening.service, {});
  const browser = new Browser(listening.baseUrl);
  const path = (await callbackPath(browser)).replace('/operator/v1', '');
  const thief = new Browser(listening.baseUrl);
  assert.equal((await thief.get(path)).status, 401);
  await callbackPath(thief);
  assert.equal((await thief.get(path)).status, 401);
  const answers = await Promise.all([browser.get(path), browser.get(path)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
  const again = new Browser(listening.baseUrl);
  const changed = (await callbackPath(again))
    .replace('/operator/v1', '')
    .replace(/code=(.)/, (_, first) => (first === 'a' ? 'code=b' : 'code=a'));
  assert.equal((await again.get(changed)).status, 401);
  const [row] = await listening.service.db.query<{ count: bigint }>(
    sql`select count(*) as count from sessions`,
  );
  assert.equal(row?.count, 1n);
});
