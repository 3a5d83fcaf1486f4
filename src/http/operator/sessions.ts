import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TObject } from 'typebox';
import type { Service } from '../../context.ts';
import { invalid, notFound, Problem } from '../../operator/problem.ts';
import { checkInput } from '../../operator/validate.ts';
import { enroll, openInvitation } from '../../people/enroll.ts';
import type { Factor } from '../../people/factors.ts';
import {
  type Door,
  endOwnSession,
  endOwnSessions,
  findSession,
  listSessions,
  type Origin,
  type Session,
} from '../../people/sessions.ts';
import { beginSignIn, finishSignIn, signInByLink, stepUp } from '../../people/sign-in.ts';
import { JSON_TYPE } from '../answer.ts';
import { checkHead, parseJson } from '../wire.ts';
import { readCookie, setCookie } from './cookies.ts';
import { sendProblem } from './problems.ts';
import { requireSameOrigin } from './same-origin.ts';

/**
 * Where people sign in: the routes of sessions below /operator/v1 and /portal/v1. They answer browsers,
 * not tokens.
 */

const PREFIXES = { operator: '/operator/v1', portal: '/portal/v1' } as const;

export type SessionReach = {
  /** Where browsers reach the service; undefined where that is the Host that they name. */
  readonly publicUrl?: string | undefined;
};

type Serving = { readonly service: Service; readonly door: Door; readonly reach: SessionReach };

/** What a route is given: the body, checked, and where it came from. */
type Asked<Body> = {
  readonly body: Body;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly origin: Origin;
};

const Text = (maxLength = 300) => Type.String({ minLength: 1, maxLength });
const Nothing = Type.Object({}, { additionalProperties: false });

/** One of the ways to sign in, or the step that follows. */
const SignIn = Type.Object(
  {
    email: Type.Optional(Text()),
    password: Type.Optional(Text(1_000)),
    totp: Type.Optional(Text(10)),
    recoveryCode: Type.Optional(Text(40)),
    link: Type.Optional(Text()),
  },
  { additionalProperties: false },
);
const StepUp = Type.Object({ totp: Text(10) }, { additionalProperties: false });
const Link = Type.Object({ token: Text() }, { additionalProperties: false });
const Enrollment = Type.Object(
  { token: Text(), name: Text(), password: Text(1_000), totp: Text(10) },
  { additionalProperties: false },
);

/** Serves the sign-in and the sessions of both doors. */
export function serveSessions(app: FastifyInstance, service: Service, reach: SessionReach): void {
  for (const door of ['operator', 'portal'] as const) {
    const serving = { service, door, reach };
    serveSignIn(app, serving);
    serveOwnSessions(app, serving);
  }
}

function serveSignIn(app: FastifyInstance, serving: Serving): void {
  const { service, door } = serving;
  route(app, serving, 'POST', '/session', SignIn, (asked) => signInStep(serving, asked));
  route(app, serving, 'POST', '/enrollment', Link, async ({ body: { token } }) => {
    const { expiresAt, merchantId, ...opened } = await openInvitation(service, door, token);
    return { ...opened, merchantId: merchantId === null ? null : String(merchantId), expiresAt };
  });
  route(app, serving, 'POST', '/enrollment/complete', Enrollment, async ({ body, reply, origin }) => {
    const { token, recoveryCodes } = await enroll(service, door, body.token, body, origin);
    return { ...(await signedIn(serving, reply, token)), recoveryCodes };
  });
}

function serveOwnSessions(app: FastifyInstance, serving: Serving): void {
  const { service, door } = serving;
  route(app, serving, 'GET', '/session', Nothing, async ({ request }) =>
    viewOf((await requireSession(serving, request)).session),
  );
  route(app, serving, 'DELETE', '/session', Nothing, async ({ request, reply, origin }) => {
    const { session } = await requireSession(serving, request);
    await endOwnSession(service, session, session.id, origin);
    setCookie(reply, 'session', door, undefined);
    return undefined;
  });
  route(app, serving, 'POST', '/session/step-up', StepUp, async ({ body, request, reply, origin }) => {
    const { session, token } = await requireSession(serving, request);
    return signedIn(serving, reply, await stepUp(service, session, token, body, origin));
  });
  route(app, serving, 'GET', '/sessions', Nothing, async ({ request }) => {
    const { session } = await requireSession(serving, request);
    const found = await listSessions(service, session.user.id, door);
    const items = found.map((each) => ({ ...each, id: String(each.id), current: each.id === session.id }));
    return { items, nextCursor: null };
  });
  route(app, serving, 'DELETE', '/sessions/:id', Nothing, async ({ request, origin }) => {
    const { session } = await requireSession(serving, request);
    const { id } = request.params as { id: string };
    const isKnown = /^\d{1,18}$/.test(id) && (await endOwnSession(service, session, BigInt(id), origin));
    if (!isKnown) throw notFound('such session');
    return undefined;
  });
  route(app, serving, 'POST', '/sessions/end-others', Nothing, async ({ request, origin }) => {
    const { session } = await requireSession(serving, request);
    return { ended: await endOwnSessions(service, session, origin) };
  });
}

/** Takes a password, a second factor for a sign-in that has begun, or a link. */
async function signInStep(serving: Serving, { body, request, reply, origin }: Asked<Static<typeof SignIn>>) {
  const { service, door } = serving;
  const { email, password, totp, recoveryCode, link } = body;
  if (Object.keys(body).length === 2 && email !== undefined && password !== undefined) {
    const { token, factors } = await beginSignIn(service, door, { email, password }, origin);
    setCookie(reply, 'begun', door, token);
    return { next: 'second-factor', factors };
  }
  const factor: Factor | undefined =
    totp === undefined ? (recoveryCode === undefined ? undefined : { recoveryCode }) : { totp };
  if (Object.keys(body).length !== 1 || (factor === undefined && link === undefined))
    throw invalid('body', 'oneOf', 'takes email and password, or one of totp, recoveryCode, link');
  if (factor === undefined)
    return signedIn(serving, reply, await signInByLink(service, door, link ?? '', origin));
  const begun = readCookie(request, 'begun', door);
  if (!begun) throw new Problem('unauthorized', 'the sign-in has expired: begin again with the password');
  const token = await finishSignIn(service, door, begun, factor, origin);
  setCookie(reply, 'begun', door, undefined);
  return signedIn(serving, reply, token);
}

/** Sets the cookie of a session, and shows it. */
async function signedIn({ service, door }: Serving, reply: FastifyReply, token: string) {
  const session = await findSession(service, token, door);
  if (!session) throw new Problem('unauthorized', 'the session has ended: sign in again');
  setCookie(reply, 'session', door, token);
  return viewOf(session);
}

function viewOf({ id, user, createdAt, expiresAt, idleMs, steppedUpUntil }: Session) {
  const merchantId = user.merchantId === null ? null : String(user.merchantId);
  const shown = { ...user, id: String(user.id), merchantId };
  return { id: String(id), user: shown, createdAt, expiresAt, idleSeconds: idleMs / 1_000, steppedUpUntil };
}

/** The session of a request, and its token. @throws Problem `unauthorized` */
async function requireSession({ service, door }: Serving, request: FastifyRequest) {
  const token = readCookie(request, 'session', door);
  const session = token === undefined ? undefined : await findSession(service, token, door);
  if (!token || !session) throw new Problem('unauthorized', 'sign in first: the session has ended');
  return { session, token };
}

const originOf = ({ ip, headers, id }: FastifyRequest): Origin => ({
  address: ip,
  agent: headers['user-agent'] ?? 'unknown',
  requestId: id,
});

/** Adds a route. What it returns is answered as JSON; undefined as 204. */
function route<Body extends TObject>(
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
