import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { Provider } from 'oidc-provider';
import { freePort } from '../../soak/process.ts';
import { buildServer } from '../../src/http/server.ts';
import { Browser } from './browser.ts';
import { type ListeningService, testService } from './harness.ts';

/** Single sign-on: a service, a real identity provider, and a browser that goes there and back. */

/** The account that signs in at the identity provider. */
export type Account = {
  id: string;
  email?: string;
  verified?: boolean;
  amr?: string[];
  /** When the person signed in at the provider; now, unless given. */
  authenticatedAt?: Date;
};

export type Scene = {
  readonly listening: ListeningService;
  readonly account: Account;
  /** Signs in at the provider. @returns the answer of the callback, and the browser */
  signIn(): Promise<{ browser: Browser; status: number; text: string }>;
  /** Signs in at the provider. @returns the path and query that it redirects the browser to */
  callbackPath(browser: Browser, from?: string): Promise<string>;
  /** Calls the callback as a browser does that the provider's page sends. */
  comeBack(browser: Browser, path: string): ReturnType<Browser['get']>;
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
    const { id: accountId, amr, authenticatedAt } = account;
    const ts = Math.floor((authenticatedAt?.getTime() ?? Date.now()) / 1_000);
    const login = { accountId, ts, ...(amr && { amr }) };
    provider.interactionFinished(request, response, { login }).catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), '127.0.0.1', resolve));
  t.after(() => server.close());
  return issuer;
}

/**
 * @param start starts the provider of an account; a real one, unless given
 */
export async function scene(t: TestContext, start = startProvider): Promise<Scene> {
  const started = await testService(t);
  const port = await freePort();
  // Another site than the provider, which listens at 127.0.0.1.
  const baseUrl = `http://localhost:${port}`;
  const account: Account = { id: 'account-1', email: 'ada@example.com', amr: ['pwd', 'otp', 'mfa'] };
  const issuer = await start(t, `${baseUrl}/operator/v1/session/oidc/callback`, account);
  const oidc = { issuer, clientId: 'scrip', clientSecret: 'a secret of the test' };
  const app = buildServer(started.service, { publicUrl: baseUrl, oidc });
  t.after(() => app.close());
  await app.listen({ host: '127.0.0.1', port });
  const callbackPath = async (browser: Browser, from = '/session/oidc') => {
    const { headers, status, text } = await browser.get(from);
    assert.equal(status, 302, text);
    return visitProvider(headers.get('location') ?? '', baseUrl);
  };
  const comeBack = async (browser: Browser, path: string) => {
    const cookies = new Map(browser.cookies);
    // The provider's page sends the browser here, so it leaves the strict cookies out.
    for (const name of cookies.keys()) if (!name.endsWith('_oidc')) browser.cookies.delete(name);
    const headers = { 'sec-fetch-site': 'cross-site', origin: undefined, 'x-scrip-request': undefined };
    const answer = await browser.get(path.replace('/operator/v1', ''), headers);
    for (const [name, value] of cookies)
      if (!name.endsWith('_oidc') && !browser.cookies.has(name)) browser.cookies.set(name, value);
    return answer;
  };
  const signIn = async () => {
    const browser = new Browser(baseUrl);
    const { status, text } = await comeBack(browser, await callbackPath(browser));
    return { browser, status, text };
  };
  return { listening: { ...started, baseUrl }, account, signIn, callbackPath, comeBack };
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
