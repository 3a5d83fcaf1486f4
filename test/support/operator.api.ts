import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { perform } from '../../src/operations/perform.ts';
import { createToken } from '../../src/people/tokens.ts';
import { COMMAND_LINE, type ListeningService, startListening, type TestService } from './harness.ts';

/** Calls /operator/v1 and /portal/v1 with tokens, as programs do. */

type Answer = {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the tests are about.
  readonly body: any;
};

type Headers_ = Readonly<Record<string, string>>;

export type OperatorApi = {
  readonly testService: ListeningService;
  /** Creates a token with roles and the right to step up, for the operator or for a merchant. */
  token(roles: readonly string[], merchantId?: number): Promise<string>;
  get(path: string, headers?: Headers_): Promise<Answer>;
  post(path: string, body: unknown, headers?: Headers_): Promise<Answer>;
  call(method: string, url: string, body?: unknown, headers?: Headers_): Promise<Answer>;
};

/** Creates a token with roles and the right to step up, for the operator or for a merchant. */
export async function makeToken(
  { service }: TestService,
  roles: readonly string[],
  merchantId?: number,
  name?: string,
): Promise<string> {
  const input = {
    roles,
    stepUp: true,
    ...(name && { name }),
    ...(merchantId !== undefined && { merchantId: String(merchantId) }),
  };
  const { output } = await perform(createToken as never, { service, principal: COMMAND_LINE, input });
  return (output as { token: string }).token;
}

/** A server for the tests of a file, and an owner's token for the calls. */
export function operatorApi(): OperatorApi {
  let listening: ListeningService | undefined;
  let ownToken = '';
  before(async () => {
    listening = await startListening();
    ownToken = await makeToken(listening, ['owner']);
  });
  after(() => listening?.stop());
  const started = () => listening ?? assert.fail('the server has not started');
  const call = async (
    method: string,
    url: string,
    body?: unknown,
    headers: Headers_ = {},
  ): Promise<Answer> => {
    const response = await fetch(started().baseUrl + url, {
      method,
      headers: {
        authorization: `Bearer ${ownToken}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    // Whatever is asked, and whoever asks: browsers and proxies keep no data.
    if (!url.startsWith('/docs')) assert.equal(response.headers.get('cache-control'), 'no-store');
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    get testService() {
      return started();
    },
    token: (roles, merchantId) => makeToken(started(), roles, merchantId),
    get: (path, headers) => call('GET', `/operator/v1${path}`, undefined, headers),
    post: (path, body, headers) => call('POST', `/operator/v1${path}`, body, headers),
    call,
  };
}
