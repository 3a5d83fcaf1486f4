import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TObject, type TProperties } from 'typebox';
import type { Service } from '../../context.ts';
import { hashOfBearer } from '../../credentials.ts';
import { checkInput } from '../../operations/validate.ts';
import { DEVICE_MS, type Device, newDeviceToken, readDeviceToken } from '../../people/devices.ts';
import { type Door, findSession, type SignedIn, type Visitor } from '../../people/sessions.ts';
import { Problem } from '../../problem.ts';
import { JSON_TYPE } from '../answer.ts';
import { checkHead, parseJson } from '../wire.ts';
import { admitTo, type Desk } from './desk.ts';

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
  { service: { keys, clock }, door, origin: { devices } }: Visitor,
  reply: FastifyReply,
  userId: number,
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

/** A request to a route: who asks, with the connections for it, and the checked body. */
export type Asked<Body> = Visitor & {
  readonly body: Body;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
};

export const Fields = <Properties extends TProperties>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false });
export const Text = (maxLength = 300) => Type.String({ minLength: 1, maxLength });
export const Nothing = Fields({});

/** Returns the token of this browser's sign-in in progress. @throws Problem `unauthorized` */
export function requireBegun({ door, request }: Asked<unknown>): string {
  const begun = readCookie(request, 'begun', door);
  if (!begun) throw new Problem('unauthorized', 'the sign-in has expired: begin again');
  return begun;
}

/** Returns the session of a request, and its token. @throws Problem `unauthorized` */
export async function requireSession(service: Service, door: Door, request: FastifyRequest) {
  const token = readCookie(request, 'session', door);
  const session = token && (await findSession(service, token, door, isBackground(request)));
  if (!token || !session) throw new Problem('unauthorized', 'sign in first: the session has ended');
  const { id, merchantId } = session.user;
  request.trace.principal = { kind: 'user', id: String(id), merchantId };
  return { session, token };
}

/** Returns who sends a request. A page of another origin was refused before. */
export const visitorOf = (service: Service, request: FastifyRequest, door: Door): Visitor => ({
  service,
  door,
  origin: {
    address: request.ip,
    agent: request.headers['user-agent'] ?? 'unknown',
    page: String(request.headers.origin),
    requestId: request.id,
    devices: readDevices(service, request, door),
  },
});

type Method = 'GET' | 'POST' | 'DELETE';
type Called = `${Method} ${string}`;

/** A route at both doors. Its result is sent as JSON; undefined as 204. */
export type Route = {
  readonly called: Called;
  readonly body: TObject;
  run(asked: Asked<unknown>): Promise<unknown>;
};

/** Defines a route for anybody. */
export function visiting<Body extends TObject>(
  called: Called,
  body: Body,
  run: (asked: Asked<Static<Body>>) => Promise<unknown>,
): Route {
  return { called, body, run: run as Route['run'] };
}

/** Defines a route for users who have signed in. */
export function signedIn<Body extends TObject>(
  called: Called,
  body: Body,
  run: (asked: Asked<Static<Body>> & SignedIn) => Promise<unknown>,
): Route {
  return visiting(called, body, async (asked) =>
    run({ ...asked, ...(await requireSession(asked.service, asked.door, asked.request)) }),
  );
}

/** Serves a route at a door. */
export function serveRoute(
  app: FastifyInstance,
  { desk, door, reach }: { readonly desk: Desk; readonly door: Door; readonly reach: SessionReach },
  { called, body, run }: Route,
): void {
  const [method, path] = called.split(' ') as [Method, string];
  const url = PREFIXES[door] + path;
  app.route({
    method,
    url,
    onRequest(request, _reply, done) {
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
      const answer = await run({ ...visitorOf(service, request, door), body: given, request, reply });
      return answer === undefined
        ? reply.code(204).send()
        : reply.type(JSON_TYPE).send(JSON.stringify(answer));
    },
  });
}
