import assert from 'node:assert/strict';
import { TOTP } from 'otpauth';
import type { Service } from '../../src/context.ts';
import { invitations } from '../../src/people/invite.ts';
import { PASSWORD_COST } from '../../src/people/password.ts';
import type { Door } from '../../src/people/sessions.ts';
import { asOperator, type ListeningService } from './harness.ts';

/**
 * Calls the routes of people as a browser does: with cookies, and with the headers of a page.
 */

type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: a test may read any part of an answer.
  readonly body: any;
};

type Fields = Readonly<Record<string, string | undefined>>;

export class Browser {
  readonly cookies = new Map<string, string>();
  /** The address that a trusted proxy reports; undefined: that of this process. */
  address: string | undefined;
  readonly #baseUrl: string;
  readonly #prefix: string;

  constructor(baseUrl: string, door: Door = 'operator') {
    this.#baseUrl = baseUrl;
    this.#prefix = `/${door}/v1`;
  }

  /** @param headers replace those of a page of the console; undefined removes one */
  async send(method: string, path: string, body?: unknown, headers: Fields = {}): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const all: Fields = {
      origin: this.#baseUrl,
      'sec-fetch-site': 'same-origin',
      'x-scrip-request': '1',
      'user-agent': 'a browser',
      'x-forwarded-for': this.address,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(cookie && { cookie }),
      ...headers,
    };
    const sent = Object.entries(all).filter((each): each is [string, string] => each[1] !== undefined);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(this.#baseUrl + this.#prefix + path, {
      method,
      headers: sent,
      redirect: 'manual',
      ...(body !== undefined && { body: text }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const bytes = Buffer.from(await response.arrayBuffer());
    const answer = bytes.toString();
    const { status, headers: received } = response;
    return {
      status,
      headers: received,
      text: answer,
      bytes,
      body: answer.startsWith('{') ? JSON.parse(answer) : undefined,
    };
  }

  get = (path: string, headers?: Fields) => this.send('GET', path, undefined, headers);
  post = (path: string, body: unknown = {}, headers?: Fields) => this.send('POST', path, body, headers);
}

export const PASSWORD = 'correct horse battery';

/** The cost of a password's hash in the service. */
export const COST_OF_SERVICE = { ...PASSWORD_COST };
// The tests use a cheaper hash.
PASSWORD_COST.N = 2 ** 10;

/** A person with an authenticator app. */
export type Person = {
  readonly id: number;
  readonly email: string;
  readonly password: string;
  readonly totpSecret: string;
  readonly recoveryCodes: readonly string[];
  /** The code of the app at a time. */
  code(at: Date): string;
};

export type Wanted = {
  readonly email?: string;
  readonly roles?: readonly string[];
  readonly merchantId?: number;
};

/** The code of an authenticator app. */
export function codeOf(secret: string, at: Date): string {
  return new TOTP({ secret }).generate({ timestamp: at.getTime() });
}

export async function invited(
  service: Service,
  { email = 'ada@example.com', roles = ['owner'], merchantId }: Wanted,
) {
  const of = merchantId === undefined ? null : String(merchantId);
  return linkTo(
    invitations.invite.run(asOperator(service), { email, roles: roles as never, merchantId: of }),
  );
}

/** Makes a link with which a user enrolls again. */
export function reset(service: Service, id: number | string) {
  return linkTo(invitations.reset.run(asOperator(service), { id: String(id) }));
}

async function linkTo(invitation: ReturnType<typeof invitations.reset.run>) {
  const { id, link } = await invitation;
  return { userId: Number(id), token: link.slice(link.indexOf('#') + 1) };
}

/** Invites a person, who enrolls in a browser and is then signed in. */
export async function enrolled(
  listening: ListeningService,
  wanted: Wanted = {},
): Promise<{ person: Person; browser: Browser }> {
  const { email = 'ada@example.com' } = wanted;
  const { token, userId } = await invited(listening.service, wanted);
  const door = wanted.merchantId === undefined ? 'operator' : 'portal';
  const { browser, ...enrolling } = await accept(listening, token, door);
  return { person: { id: userId, email, password: PASSWORD, ...enrolling }, browser };
}

/** Enrolls in a browser with the token of an invitation. Moves the clock, since the code is used up. */
export async function accept(
  {
    clock,
    baseUrl,
  }: Pick<ListeningService, 'baseUrl'> & { clock: Pick<ListeningService['clock'], 'now' | 'advance'> },
  token: string,
  door: Door = 'operator',
) {
  const browser = new Browser(baseUrl, door);
  const opened = await browser.post('/enrollment', { token });
  assert.equal(opened.status, 200, opened.text);
  const totpSecret: string = opened.body.totp.secret;
  const code = (at: Date) => codeOf(totpSecret, at);
  const body = { token, name: 'Ada Lovelace', password: PASSWORD, totp: code(clock.now()) };
  const done = await browser.post('/enrollment/complete', body);
  assert.equal(done.status, 200, done.text);
  clock.advance(30_000);
  const recoveryCodes: string[] = done.body.recoveryCodes;
  return { browser, totpSecret, recoveryCodes, code };
}

/** Signs a person in. Moves the clock. */
export async function signIn(
  { baseUrl, clock }: ListeningService,
  person: Person,
  door?: Door,
): Promise<Browser> {
  const browser = new Browser(baseUrl, door);
  const { email, password } = person;
  const begun = await browser.post('/session', { email, password });
  assert.equal(begun.status, 200, begun.text);
  const done = await browser.post('/session', { totp: person.code(clock.now()) });
  assert.equal(done.status, 200, done.text);
  clock.advance(30_000);
  return browser;
}
