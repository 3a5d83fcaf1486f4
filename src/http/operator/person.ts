import type { RegistrationResponseJSON } from '@simplewebauthn/server';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TObject } from 'typebox';
import type { Service } from '../../context.ts';
import { checkInput } from '../../operator/validate.ts';
import {
  addPasskey,
  askForPasskey,
  beginPasskey,
  listPasskeys,
  placeOf,
  removePasskey,
} from '../../people/passkeys.ts';
import { type Door, findSession, type Origin } from '../../people/sessions.ts';
import { changePassword, renewRecoveryCodes } from '../../people/sign-in.ts';
import { Problem } from '../../problem.ts';
import { JSON_TYPE } from '../answer.ts';
import { checkHead, parseJson } from '../wire.ts';
import { sendProblem } from './problems.ts';

/**
 * The cookies of people. The prefix `__Host-` binds a cookie to this host and to https. Browsers also accept
 * it from http://localhost, where nobody else can listen. Scripts cannot read the cookie, and no other site
 * can make a browser send it.
 */

const NAMES = {
  session: { operator: '__Host-scrip_console', portal: '__Host-scrip_portal' },
  /** A sign-in that waits for its second factor. */
  begun: { operator: '__Host-scrip_console_begun', portal: '__Host-scrip_portal_begun' },
  /** A browser that opened an invitation. */
  enrolling: { operator: '__Host-scrip_console_enrolling', portal: '__Host-scrip_portal_enrolling' },
  /**
   * A browser that was sent to the identity provider. It returns from another site, so this cookie is `lax`.
   */
  oidc: { operator: '__Host-scrip_console_oidc', portal: '__Host-scrip_portal_oidc' },
} as const;

const ATTRIBUTES = { path: '/', secure: true, httpOnly: true } as const;
/** The form of a token: 256 bits in base64url. */
const FORM = /^[A-Za-z0-9_-]{43}$/;

type Kind = keyof typeof NAMES;

/** Returns the token in a cookie; undefined if there is none, or if it does not have the form of a token. */
export function readCookie({ headers }: FastifyRequest, kind: Kind, door: Door): string | undefined {
  const token = parseCookie(headers.cookie ?? '')[NAMES[kind][door]];
  return token !== undefined && FORM.test(token) ? token : undefined;
}

/** Sets a cookie until the browser is closed; without a token it deletes the cookie. */
export function setCookie(reply: FastifyReply, kind: Kind, door: Door, token: string | undefined): void {
  const sameSite = kind === 'oidc' ? 'lax' : 'strict';
  const attributes = { ...ATTRIBUTES, sameSite, ...(token === undefined && { maxAge: 0 }) } as const;
  reply.header(
    'set-cookie',
    stringifySetCookie({ name: NAMES[kind][door], value: token ?? '', ...attributes }),
  );
}

/** A header that no form can send. A script of another site would need a permission, which is never given. */
const OWN_HEADER = 'x-scrip-request';

/** Whether a page made a request by itself: nobody has touched it for a while. */
export const isBackground = ({ headers }: FastifyRequest) => headers[OWN_HEADER] === 'background';

const SAFE = new Set(['GET', 'HEAD']);

/**
 * Refuses requests that a page of another site made a browser send (CSRF). A request that has a cookie, or
 * sets one, must come from a script on a page of this origin. A read may also be typed into the address bar.
 * @param publicUrl the address of the service for browsers; undefined: the Host of the request
 * @throws Problem `forbidden` that names the missing part
 */
export function requireSameOrigin({ headers, method }: FastifyRequest, publicUrl: string | undefined): void {
  const site = headers['sec-fetch-site'];
  if (SAFE.has(method)) {
    if (site === undefined || site === 'same-origin' || site === 'none') return;
    throw new Problem('forbidden', 'a page of another site may not read this');
  }
  if (site !== 'same-origin') throw new Problem('forbidden', 'Sec-Fetch-Site must be same-origin');
  if (!isOwn(headers.origin, headers.host, publicUrl))
    throw new Problem(
      'forbidden',
      'Origin must be the address of this service (SCRIP_PUBLIC_URL behind a proxy)',
    );
  if (headers[OWN_HEADER] === undefined)
    throw new Problem('forbidden', 'the header X-Scrip-Request is missing');
}

function isOwn(origin: string | undefined, host: string | undefined, publicUrl: string | undefined): boolean {
  if (origin === undefined || host === undefined) return false;
  if (publicUrl !== undefined) return origin === new URL(publicUrl).origin;
  return origin === `https://${host.toLowerCase()}` || origin === `http://${host.toLowerCase()}`;
}

/** Routes for people in browsers: only from this origin, with the cookies that it set. */

const PREFIXES = { operator: '/operator/v1', portal: '/portal/v1' } as const;

export type SessionReach = {
  /** The address of the service for browsers; undefined: the Host of each request. */
  readonly publicUrl?: string | undefined;
};

export type Serving = { readonly service: Service; readonly door: Door; readonly reach: SessionReach };

/** The input of a route: the checked body, and its origin. */
export type Asked<Body> = {
  readonly body: Body;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly origin: Origin;
};

export const Text = (maxLength = 300) => Type.String({ minLength: 1, maxLength });
export const Nothing = Type.Object({}, { additionalProperties: false });

/** Returns the token of this browser's sign-in in progress. @throws Problem `unauthorized` */
export function requireBegun({ door }: Serving, request: FastifyRequest): string {
  const begun = readCookie(request, 'begun', door);
  if (!begun) throw new Problem('unauthorized', 'the sign-in has expired: begin again');
  return begun;
}

/** Returns the origin of the requesting page. Requests from pages of another origin were refused before. */
export const originOfPage = ({ headers }: FastifyRequest) => String(headers.origin);

/** Returns the session of a request, and its token. @throws Problem `unauthorized` */
export async function requireSession(
  { service, door }: Pick<Serving, 'service' | 'door'>,
  request: FastifyRequest,
) {
  const token = readCookie(request, 'session', door);
  const session = token && (await findSession(service, token, door, isBackground(request)));
  if (!token || !session) throw new Problem('unauthorized', 'sign in first: the session has ended');
  return { session, token };
}

/** Returns the origin of a request. */
export const originOf = ({ ip, headers, id }: FastifyRequest): Origin => ({
  address: ip,
  agent: headers['user-agent'] ?? 'unknown',
  requestId: id,
});

/** Adds a route. Its result is sent as JSON; undefined as 204. */
export function route<Body extends TObject>(
  app: FastifyInstance,
  { service, door, reach }: Serving,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body: Body,
  run: (asked: Asked<Static<Body>>) => Promise<unknown>,
): void {
  const url = PREFIXES[door] + path;
  app.route({
    method,
    url,
    onRequest(request, _reply, done) {
      request.trace.route = url;
      try {
        requireSameOrigin(request, reach.publicUrl);
      } catch (error) {
        done(error as Error);
        return;
      }
      done(checkHead(request.headers, ['application/json']));
    },
    async handler(request, reply) {
      const bytes = request.body as Buffer | undefined;
      const given = checkInput(body, bytes?.length ? parseJson(bytes) : {});
      const answer = await run({ body: given, request, reply, origin: originOf(request) });
      return answer === undefined
        ? reply.code(204).send()
        : reply.type(JSON_TYPE).send(JSON.stringify(answer));
    },
    errorHandler: (error, request, reply) => sendProblem(service, request, reply, error),
  });
}

/** Changes of people to their own accounts, and challenges for their devices. */

const Password = Type.Object(
  { password: Text(1_000), newPassword: Text(1_000) },
  { additionalProperties: false },
);
const NewPasskey = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100 }),
    response: Type.Unsafe<RegistrationResponseJSON>({ type: 'object' }),
  },
  { additionalProperties: false },
);

/** Serves a person's own account at one of the doors. */
export function serveAccount(app: FastifyInstance, serving: Serving): void {
  const { service, door } = serving;
  route(app, serving, 'POST', '/account/password', Password, async ({ body, request, origin }) => {
    const { session } = await requireSession(serving, request);
    await changePassword(service, session, body, origin);
    return undefined;
  });
  route(app, serving, 'POST', '/account/recovery-codes', Nothing, async ({ request, origin }) => {
    const { session } = await requireSession(serving, request);
    return { recoveryCodes: await renewRecoveryCodes(service, session, origin) };
  });
  route(app, serving, 'GET', '/account/passkeys', Nothing, async ({ request }) => {
    const { session } = await requireSession(serving, request);
    return { items: await listPasskeys(service, session.user.id), nextCursor: null };
  });
  route(app, serving, 'POST', '/account/passkeys/options', Nothing, async ({ request, reply }) => {
    const { session } = await requireSession(serving, request);
    const { options, token } = await beginPasskey(service, session, placeOf(originOfPage(request)));
    setCookie(reply, 'begun', door, token);
    return options;
  });
  route(app, serving, 'POST', '/account/passkeys', NewPasskey, async ({ body, request, reply, origin }) => {
    const { session } = await requireSession(serving, request);
    const place = placeOf(originOfPage(request));
    const added = await addPasskey(service, session, requireBegun(serving, request), body, place, origin);
    setCookie(reply, 'begun', door, undefined);
    return added;
  });
  route(app, serving, 'DELETE', '/account/passkeys/:id', Nothing, async ({ request, origin }) => {
    const { session } = await requireSession(serving, request);
    await removePasskey(service, session, (request.params as { id: string }).id, origin);
    return undefined;
  });
  route(app, serving, 'POST', '/session/passkey/options', Nothing, async ({ request, reply }) => {
    const { options, token } = await askForPasskey(service, placeOf(originOfPage(request)));
    setCookie(reply, 'begun', door, token);
    return options;
  });
  route(app, serving, 'POST', '/session/step-up/options', Nothing, async ({ request, reply }) => {
    const { session } = await requireSession(serving, request);
    const { options, token } = await askForPasskey(service, placeOf(originOfPage(request)), session);
    setCookie(reply, 'begun', door, token);
    return options;
  });
}
