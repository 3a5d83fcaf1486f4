import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { freePort } from '../../soak/process.ts';
import type { Account } from './identity-provider.ts';

/** An identity provider that answers with any ID token that a test wants. */

type Parts = { header: Record<string, unknown>; claims: Record<string, unknown>; key: KeyObject };
/** Changes an ID token before it is signed. It may also return the whole token. */
export type Forgery = (parts: Parts, keys: Keys) => string | undefined;
type Keys = { readonly own: KeyObject; readonly foreign: KeyObject; readonly publicPem: string };

const CLIENT_SECRET = 'a secret of the test';
const send = (response: ServerResponse, body: unknown) =>
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs with an RSA key, or with a secret as HS256 does. */
export function signed({ header, claims, key }: Parts): string {
  const text = `${json(header)}.${json(claims)}`;
  const signature =
    key.type === 'secret'
      ? createHmac('sha256', key).update(text).digest()
      : sign('sha256', Buffer.from(text), key);
  return `${text}.${signature.toString('base64url')}`;
}

/** Returns a function that starts the provider, and the forgery that it performs, which a test sets. */
export function forger() {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const publicPem = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const keys: Keys = { own: pair.privateKey, foreign, publicPem };
  const forging: { forge: Forgery } = { forge: () => undefined };
  const asked = new Map<string, string>();

  const start = async (t: TestContext, redirectUri: string, account: Account): Promise<string> => {
    const issuer = `http://127.0.0.1:${await freePort()}`;
    const tokenOf = (nonce: string | undefined) => {
      const now = Math.floor(Date.now() / 1_000);
      const claims: Record<string, unknown> = {
        iss: issuer,
        sub: account.id,
        aud: 'scrip',
        iat: now,
        exp: now + 300,
        auth_time: Math.floor((account.authenticatedAt?.getTime() ?? Date.now()) / 1_000),
        email: account.email,
        email_verified: account.verified ?? true,
        ...(account.amr && { amr: account.amr }),
        ...(nonce !== undefined && { nonce }),
      };
      const parts = { header: { alg: 'RS256', kid: 'one' }, claims, key: keys.own };
      return forging.forge(parts, keys) ?? signed(parts);
    };
    const serve = (request: IncomingMessage, response: ServerResponse) => {
      const url = new URL(request.url ?? '/', issuer);
      if (url.pathname === '/.well-known/openid-configuration')
        return send(response, {
          issuer,
          authorization_endpoint: `${issuer}/auth`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          response_types_supported: ['code'],
          id_token_signing_alg_values_supported: ['RS256'],
          authorization_response_iss_parameter_supported: true,
        });
      if (url.pathname === '/jwks') {
        const jwk = createPublicKey(publicPem).export({ format: 'jwk' });
        return send(response, { keys: [{ ...jwk, kid: 'one', alg: 'RS256', use: 'sig' }] });
      }
      if (url.pathname === '/auth') {
        const code = `code-${asked.size}`;
        asked.set(code, url.searchParams.get('nonce') ?? '');
        const back = new URL(redirectUri);
        const iss = url.searchParams.get('iss') ?? issuer;
        back.search = new URLSearchParams({
          code,
          state: url.searchParams.get('state') ?? '',
          iss,
        }).toString();
        return response.writeHead(302, { location: back.href }).end();
      }
      let body = '';
      request.on('data', (piece) => (body += piece));
      return request.on('end', () => {
        const code = new URLSearchParams(body).get('code') ?? '';
        const id_token = tokenOf(asked.get(code));
        send(response, { access_token: 'a', token_type: 'Bearer', expires_in: 60, id_token });
      });
    };
    const server = createServer((request, response) => void serve(request, response));
    await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), '127.0.0.1', resolve));
    t.after(() => server.close());
    return issuer;
  };
  return { start, forging };
}

export { CLIENT_SECRET };
