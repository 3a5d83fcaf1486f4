import type { RegistrationResponseJSON } from '@simplewebauthn/server';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TObject } from 'typebox';
import type { Service } from '../../context.ts';
import { hashOfBearer } from '../../credentials.ts';
import { checkInput } from '../../operations/validate.ts';
import { DEVICE_MS, type Device, newDeviceToken, readDeviceToken } from '../../people/devices.ts';
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
import { admitTo, type Desk } from './desk.ts';
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
  /** A browser in which a user has signed in before. The id of the user follows. */
  device: { operator: '__Host-scrip_console_device', portal: '__Host-scrip_portal_device' },
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

type Kind = Exclude<keyof typeof NAMES, 'device'>;

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

/** The most users of one browser that are remembered. A further one replaces the oldest. */
const DEVICES_MAX = 10;

/** Returns the devices for which the browser has a cookie that is valid. */
function readDevices({ keys, clock }: Service, { headers }: FastifyRequest, door: Door): Device[] {
  const prefix = `${NAMES.device[door]}_`;
  return Object.entries(parseCookie(headers.cookie ?? ''))
    .filter(([name, value]) => name.startsWith(prefix) && value !== undefined && FORM.test(value))
    .slice(0, 2 * DEVICES_MAX)
    .flatMap(([, value]) => readDeviceToken(keys, value ?? '', clock()) ?? []);
}

/** Sets the cookie by which a browser is known as a device of a user who has signed in. */
export function rememberDevice(
  { keys, clock }: Service,
  door: Door,
  reply: FastifyReply,
  userId: number,
  devices: readonly Device[],
): void {
  const others = devices.filter((each) => each.userId !== userId);
  const known = devices.find((each) => each.userId === userId);
  const set = (id: number, value: string, maxAge: number) =>
    reply.header(
      'set-cookie',
      stringifySetCookie({
        name: `${NAMES.device[door]}_${id}`,
        value,
        ...ATTRIBUTES,
        sameSite: 'strict',
        maxAge,
      }),
    );
  set(userId, newDeviceToken(keys, userId, clock(), known), DEVICE_MS / 1_000);
  const newestFirst = others.toSorted((one, other) => other.issuedAt.getTime() - one.issuedAt.getTime());
  for (const { userId: oldest } of newestFirst.slice(DEVICES_MAX - 1)) set(oldest, '', 0);
}

/**
 * Returns the credential of a browser that this service has issued: that of a session, or of a known device.
 * @returns undefined for a stranger
 */
export function credentialOf(service: Service, request: FastifyRequest, door: Door): string | undefined {
  const session = readCookie(request, 'session', door);
  if (session !== undefined && hashOfBearer(service.keys, 'session', session)) return session;
  const [device] = readDevices(service, request, door);
  return device && `device ${device.userId} ${device.id}`;
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

export type Serving = { readonly desk: Desk; readonly door: Door; readonly reach: SessionReach };

/** The input of a route: the checked body, its origin, and the service with the connections for it. */
export type Asked<Body> = {
  readonly service: Service;
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
export async function requireSession(service: Service, door: Door, request: FastifyRequest) {
  const token = readCookie(request, 'session', door);
  const session = token && (await findSession(service, token, door, isBackground(request)));
  if (!token || !session) throw new Problem('unauthorized', 'sign in first: the session has ended');
  const { id, merchantId } = session.user;
  request.trace.principal = { kind: 'user', id: String(id), merchantId };
  return { session, token };
}

/** Returns the origin of a request. */
export const originOf = (service: Service, request: FastifyRequest, door: Door): Origin => ({
  address: request.ip,
  agent: request.headers['user-agent'] ?? 'unknown',
  requestId: request.id,
  devices: readDevices(service, request, door),
});

/** Adds a route. Its result is sent as JSON; undefined as 204. */
export function route<Body extends TObject>(
  app: FastifyInstance,
  { desk, door, reach }: Serving,
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
      const service = admitTo(desk, request, reply, credentialOf(desk.service, request, door));
      const bytes = request.body as Buffer | undefined;
      const given = checkInput(body, bytes?.length ? parseJson(bytes) : {});
      const origin = originOf(service, request, door);
      const answer = await run({ service, body: given, request, reply, origin });
      return answer === undefined
        ? reply.code(204).send()
        : reply.type(JSON_TYPE).send(JSON.stringify(answer));
    },
    errorHandler: (error, request, reply) => sendProblem(desk.service, request, reply, error),
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
  const { door } = serving;
  route(app, serving, 'POST', '/account/password', Password, async ({ service, body, request, origin }) => {
    const { session } = await requireSession(service, door, request);
    await changePassword(service, session, body, origin);
    return undefined;
  });
  route(app, serving, 'POST', '/account/recovery-codes', Nothing, async ({ service, request, origin }) => {
    const { session } = await requireSession(service, door, request);
    return { recoveryCodes: await renewRecoveryCodes(service, session, origin) };
  });
  route(app, serving, 'GET', '/account/passkeys', Nothing, async ({ service, request }) => {
    const { session } = await requireSession(service, door, request);
    return { items: await listPasskeys(service, session.user.id), nextCursor: null };
  });
  route(app, serving, 'POST', '/account/passkeys/options', Nothing, async ({ service, request, reply }) => {
    const { session } = await requireSession(service, door, request);
    const { options, token } = await beginPasskey(service, session, placeOf(originOfPage(request)));
    setCookie(reply, 'begun', door, token);
    return options;
  });
  route(
    app,
    serving,
    'POST',
    '/account/passkeys',
    NewPasskey,
    async ({ service, body, request, reply, origin }) => {
      const { session } = await requireSession(service, door, request);
      const place = placeOf(originOfPage(request));
      const added = await addPasskey(service, session, requireBegun(serving, request), body, place, origin);
      setCookie(reply, 'begun', door, undefined);
      return added;
    },
  );
  route(app, serving, 'DELETE', '/account/passkeys/:id', Nothing, async ({ service, request, origin }) => {
    const { session } = await requireSession(service, door, request);
    await removePasskey(service, session, (request.params as { id: string }).id, origin);
    return undefined;
  });
  route(app, serving, 'POST', '/session/passkey/options', Nothing, async ({ service, request, reply }) => {
    const { options, token } = await askForPasskey(service, placeOf(originOfPage(request)));
    setCookie(reply, 'begun', door, token);
    return options;
  });
  route(app, serving, 'POST', '/session/step-up/options', Nothing, async ({ service, request, reply }) => {
    const { session } = await requireSession(service, door, request);
    const { options, token } = await askForPasskey(service, placeOf(originOfPage(request)), session);
    setCookie(reply, 'begun', door, token);
    return options;
  });
}
