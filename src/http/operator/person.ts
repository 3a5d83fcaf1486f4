import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TObject, TSchema, TVoid } from 'typebox';
import type { Service } from '../../context.ts';
import { hashOfBearer } from '../../credentials.ts';
import { rendered } from '../../operation.ts';
import { checkInput } from '../../operations/validate.ts';
import { SIGN_IN_EXPIRED } from '../../people/begun.ts';
import { DEVICE_MS, type Device, newDeviceToken, readDeviceToken } from '../../people/devices.ts';
import { type Door, findSession, type SignedIn, type Visitor } from '../../people/sessions.ts';
import { Problem } from '../../problem.ts';
import { Input } from '../../schema.ts';
import { JSON_TYPE } from '../answer.ts';
import { checkHead, parseJson } from '../wire.ts';
import { admitTo, type Desk, PREFIXES } from './desk.ts';

/**
 * The cookies of people. The prefix `__Host-` binds a cookie to this host and to https. Browsers also accept
 * it from http://localhost, where nobody else can listen. Scripts cannot read the cookie, and no other site
 * can make a browser send it.
 */

/**
 * `session`; `begun`: a sign-in that waits for its second factor; `enrolling`: a browser that opened an
 * invitation; `oidc`: a browser that was sent to the identity provider.
 */
type Kind = 'session' | 'begun' | 'enrolling' | 'oidc';

const BASES = { operator: '__Host-scrip_console', portal: '__Host-scrip_portal' } as const;

export const cookieName = (kind: Kind, door: Door) =>
  kind === 'session' ? BASES[door] : `${BASES[door]}_${kind}`;

/** The cookie of a browser in which a user has signed in before. */
const deviceName = (door: Door, userId: number | '') => `${BASES[door]}_device_${userId}`;

const ATTRIBUTES = { path: '/', secure: true, httpOnly: true } as const;
/** The form of a token: 256 bits in base64url. */
const FORM = /^[A-Za-z0-9_-]{43}$/;

/** Returns the token in a cookie; undefined if there is none, or if it does not have the form of a token. */
export function readCookie({ headers }: FastifyRequest, kind: Kind, door: Door): string | undefined {
  const token = parseCookie(headers.cookie ?? '')[cookieName(kind, door)];
  return token !== undefined && FORM.test(token) ? token : undefined;
}

function putCookie(reply: FastifyReply, name: string, value: string, maxAge?: number, isLax = false): void {
  const sameSite = isLax ? 'lax' : 'strict';
  const limit = maxAge === undefined ? {} : { maxAge };
  reply.header('set-cookie', stringifySetCookie({ name, value, ...ATTRIBUTES, sameSite, ...limit }));
}

/** Sets a cookie until the browser is closed; without a token it deletes the cookie. */
export function setCookie(reply: FastifyReply, kind: Kind, door: Door, token: string | undefined): void {
  // A browser returns from the identity provider from another site.
  putCookie(reply, cookieName(kind, door), token ?? '', token === undefined ? 0 : undefined, kind === 'oidc');
}

/** The most users of one browser that are remembered. A further one replaces the oldest. */
const DEVICES_MAX = 10;

/** Returns the devices whose valid cookie the browser has. */
function readDevices({ keys, clock }: Service, { headers }: FastifyRequest, door: Door): Device[] {
  const prefix = deviceName(door, '');
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
  const token = newDeviceToken(keys, userId, clock(), known);
  putCookie(reply, deviceName(door, userId), token, DEVICE_MS / 1_000);
  const newestFirst = others.toSorted((one, other) => other.issuedAt.getTime() - one.issuedAt.getTime());
  for (const oldest of newestFirst.slice(DEVICES_MAX - 1))
    putCookie(reply, deviceName(door, oldest.userId), '', 0);
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

/** A request to a route: who asks, with the connections for it, and the checked body. */
export type Asked<Body> = Visitor & {
  readonly body: Body;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
};

/** Returns the token of this browser's sign-in in progress. @throws Problem `unauthorized` */
export function requireBegun({ door, request }: Asked<unknown>): string {
  const begun = readCookie(request, 'begun', door);
  if (!begun) throw new Problem('unauthorized', SIGN_IN_EXPIRED);
  return begun;
}

/** Returns the session of a request, and its token. @throws Problem `unauthorized` */
export async function requireSession({ service, door, request }: Asked<unknown>) {
  const token = readCookie(request, 'session', door);
  const session = token && (await findSession(service, token, door, isBackground(request)));
  if (!token || !session) throw new Problem('unauthorized', 'sign in first: the session has ended');
  const { id, merchantId } = session.user;
  request.trace.principal = { kind: 'user', id: String(id), merchantId };
  return { session, token };
}

/** Returns who sends a request. A page of another origin was refused before. */
const visitorOf = (service: Service, request: FastifyRequest, door: Door): Visitor => ({
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

type Called = `${'GET' | 'POST' | 'DELETE'} /${string}`;

/** A route at a door. */
export type Route = {
  readonly called: Called;
  readonly takes: TObject;
  /** What is sent as JSON; left out: nothing (204), or the reply that `run` returns. */
  readonly gives: TSchema | undefined;
  run(asked: Asked<unknown>): Promise<unknown>;
  /** Whether a page of another site may send a browser to it. */
  readonly isFromOutside?: boolean;
};

type Shapes<Body extends TObject, Answer extends TSchema> = {
  readonly takes?: Body;
  readonly gives?: Answer;
};

/** Defines a route for anybody. */
export function visiting<Body extends TObject, Answer extends TSchema = TVoid>(
  called: Called,
  { takes, gives }: Shapes<Body, Answer>,
  run: (asked: Asked<Static<Body>>) => Promise<Static<Answer> | FastifyReply>,
): Route {
  return { called, takes: takes ?? Input({}), gives, run: run as Route['run'] };
}

/** Defines a route for users who have signed in. */
export function signedIn<Body extends TObject, Answer extends TSchema = TVoid>(
  called: Called,
  shapes: Shapes<Body, Answer>,
  run: (asked: Asked<Static<Body>> & SignedIn) => Promise<Static<Answer>>,
): Route {
  return visiting(called, shapes, async (asked) => run({ ...asked, ...(await requireSession(asked)) }));
}

export function serveRoute(
  app: FastifyInstance,
  desk: Desk,
  door: Door,
  { called, takes, gives, run, isFromOutside = false }: Route,
): void {
  const [method = '', path] = called.split(' ');
  app.route({
    method,
    url: `${PREFIXES[door]}${path}`,
    async onRequest(request) {
      if (!isFromOutside) requireSameOrigin(request, desk.publicUrl);
      const refusal = checkHead(request.headers, ['application/json']);
      if (refusal) throw refusal;
    },
    async handler(request, reply) {
      const service = admitTo(desk, request, reply, credentialOf(desk.service, request, door));
      const bytes = request.body as Buffer | undefined;
      const given = checkInput(takes, bytes?.length ? parseJson(bytes) : {});
      const answer = await run({ ...visitorOf(service, request, door), body: given, request, reply });
      if (answer === reply) return reply;
      return gives === undefined
        ? reply.code(204).send()
        : reply.type(JSON_TYPE).send(JSON.stringify(rendered(gives, answer)));
    },
  });
}
