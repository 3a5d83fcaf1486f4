import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { recordRefusal, UNKNOWN_ACCOUNT } from '../../audit/refusals.ts';
import type { Service } from '../../context.ts';
import { OidcProvider, type OidcSettings } from '../../people/oidc.ts';
import { type Door, findSession, nameOfUser, type Session } from '../../people/sessions.ts';
import { isToken } from '../../people/token-text.ts';
import { findToken, findTokenId } from '../../people/tokens.ts';
import type { PortalRole, Principal, Role } from '../../principal.ts';
import { Problem } from '../../problem.ts';
import { JSON_TYPE } from '../answer.ts';
import { admitTo, type Desk } from './desk.ts';
import {
  credentialOf,
  isBackground,
  readCookie,
  rememberDevice,
  requireSameOrigin,
  requireSession,
  setCookie,
  visitorOf,
} from './person.ts';

/** Longer than any token of ours. */
const HEADER_LENGTH_MAX = 200;

/**
 * Admits a request, and identifies its sender: a machine by its bearer token, or a person by a session's
 * cookie, which is accepted only from our own pages.
 * @param publicUrl the address of the service for browsers; undefined: the Host of the request
 * @throws Problem `unauthorized`, the same for every fault of the token or the session; `forbidden` for a
 *   page of another site
 */
export async function identifyPrincipal(
  desk: Desk,
  request: FastifyRequest,
  reply: FastifyReply,
  door: Door,
  publicUrl: string | undefined,
): Promise<Principal> {
  admitTo(desk, request, reply, credentialIn(desk.service, request, door).credential);
  return identify(desk, request, { door, publicUrl, isQuiet: isBackground(request) });
}

/** Returns the credential of a request. A forged one is refused without a query. */
function credentialIn(service: Service, request: FastifyRequest, door: Door) {
  const bearer = request.headers.authorization;
  const cookie = bearer === undefined ? readCookie(request, 'session', door) : undefined;
  const credential = cookie === undefined ? tokenOf(service, bearer) : credentialOf(service, request, door);
  if (credential === undefined) throw new Problem('unauthorized');
  return { cookie, credential };
}

/**
 * Identifies the sender of an admitted request as it is now: a body takes up to half a minute to arrive, and
 * a stream of events lasts longer. Meanwhile the sender may have been disabled, or have lost a role.
 */
export function identifyAgain(
  desk: Desk,
  request: FastifyRequest,
  door: Door,
  publicUrl: string | undefined,
): Promise<Principal> {
  return identify(desk, request, { door, publicUrl, isQuiet: true });
}

/** Where and how a sender is identified. One that is quiet does not restart the idle time of a session. */
type At = { readonly door: Door; readonly publicUrl: string | undefined; readonly isQuiet: boolean };

async function identify({ service }: Desk, request: FastifyRequest, at: At): Promise<Principal> {
  const { cookie, credential } = credentialIn(service, request, at.door);
  const principal =
    cookie === undefined
      ? await identifyMachine(service, request, credential)
      : await identifyPerson(service, request, at, cookie);
  if (!principal) {
    // A session that has ended is nothing unusual. A token that is used after its end may have been copied.
    if (cookie === undefined)
      recordRefusal(service, {
        action: 'token.refused',
        subject: `token ${await findTokenId(service, credential)}`,
        actor: null,
        address: request.ip,
        requestId: request.id,
        by: null,
      });
    throw new Problem('unauthorized');
  }
  request.trace.principal = principal;
  return principal;
}

/** Returns the token in an Authorization header, if this service has made it. */
function tokenOf(service: Service, authorization = ''): string | undefined {
  const [, text] =
    (authorization.length <= HEADER_LENGTH_MAX && /^Bearer +(\S+) *$/i.exec(authorization)) || [];
  return text !== undefined && isToken(service, text) ? text : undefined;
}

async function identifyMachine(
  service: Service,
  request: FastifyRequest,
  text: string,
): Promise<Principal | undefined> {
  const token = await findToken(service, text, request.ip);
  return (
    token && {
      kind: 'token',
      id: token.id,
      userId: token.userId,
      name: token.name,
      roles: token.roles,
      merchantId: token.merchantId === null ? null : Number(token.merchantId),
      origin: request.ip,
      requestId: request.id,
      steppedUp: token.stepUp,
    }
  );
}

async function identifyPerson(
  service: Service,
  request: FastifyRequest,
  { door, publicUrl, isQuiet }: At,
  cookie: string,
): Promise<Principal | undefined> {
  requireSameOrigin(request, publicUrl);
  const session = await findSession(service, cookie, door, isQuiet);
  return (
    session && {
      kind: 'user',
      id: String(session.user.id),
      userId: session.user.id,
      name: nameOfUser(session.user.email, session.user.merchantId),
      roles: session.user.roles as (Role | PortalRole)[],
      merchantId: session.user.merchantId,
      origin: request.ip,
      requestId: request.id,
      steppedUp: session.steppedUpUntil !== null,
    }
  );
}

/** The routes of single sign-on: the browser goes to the identity provider, and returns. */

const PATH = '/operator/v1/session/oidc';
const SIGN_IN = '/console/sign-in';

/** Serves single sign-on. Without an identity provider, the only answer is that there is none. */
export function serveOidc(
  app: FastifyInstance,
  desk: Desk,
  settings: OidcSettings | undefined,
  publicUrl: string | undefined,
): void {
  const provider =
    settings && publicUrl !== undefined
      ? new OidcProvider(settings, `${publicUrl}${PATH}/callback`)
      : undefined;
  get(app, desk, '/operator/v1/session/methods', (_service, request, reply) => {
    requireSameOrigin(request, publicUrl);
    return reply.type(JSON_TYPE).send(JSON.stringify({ password: true, oidc: provider !== undefined }));
  });
  if (!provider) return;
  // Without a session, or with one to step up. The provider's page sends the browser to the callback; the
  // cookie and the state prove that it started here.
  const serve = (url: string, run: (...asked: GetAsked) => Promise<FastifyReply>) =>
    get(app, desk, url, async (service, request, reply) => {
      try {
        return await run(service, request, reply);
      } catch (error) {
        if (!(error instanceof Problem) || error.code === 'forbidden') throw error;
        setCookie(reply, 'oidc', 'operator', undefined);
        const refused = { action: 'session.refused', subject: UNKNOWN_ACCOUNT, by: 'oidc' } as const;
        recordRefusal(service, { ...refused, actor: null, address: request.ip, requestId: request.id });
        request.trace.statusCode = error.code;
        const reason = String(error.details['reason'] ?? error.code);
        return sendPage(reply.code(401), `${SIGN_IN}#single-sign-on=${reason}`, error.message);
      }
    });
  const visit = async (service: Service, reply: FastifyReply, session?: Session) => {
    const { url, token } = await provider.begin(service, session);
    setCookie(reply, 'oidc', 'operator', token);
    return reply.redirect(url.href);
  };
  serve(PATH, async (service, request, reply) => {
    requireSameOrigin(request, publicUrl);
    return visit(service, reply);
  });
  serve(`${PATH}/step-up`, async (service, request, reply) => {
    requireSameOrigin(request, publicUrl);
    const { session } = await requireSession(service, 'operator', request);
    return visit(service, reply, session);
  });
  serve(`${PATH}/callback`, async (service, request, reply) => {
    const token = readCookie(request, 'oidc', 'operator');
    if (!token) throw new Problem('unauthorized', 'the sign-in has expired: begin again', undefined, EXPIRED);
    const query = (request.raw.url ?? '').replace(/^[^?]*/, '');
    const visitor = visitorOf(service, request, 'operator');
    const done = await provider.finish(visitor, token, query);
    setCookie(reply, 'oidc', 'operator', undefined);
    if (!('session' in done)) {
      setCookie(reply, 'begun', 'operator', done.begun);
      return sendPage(reply, `${SIGN_IN}#second-factor`, 'Signed in.');
    }
    setCookie(reply, 'session', 'operator', done.session);
    if (!done.isStepUp) rememberDevice(visitor, reply, done.userId);
    return sendPage(reply, `${SIGN_IN}#${done.isStepUp ? 'stepped-up' : 'signed-in'}`, 'Signed in.');
  });
}

const EXPIRED = { reason: 'expired' };

/**
 * Sends a page of our own that leads to the console. An HTTP redirect would still count as coming from the
 * provider's site, and the browser would not send the session's cookie.
 */
function sendPage(reply: FastifyReply, next: string, text: string): FastifyReply {
  return reply
    .type('text/html; charset=utf-8')
    .send(
      '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Scrip</title>' +
        `<meta http-equiv="refresh" content="0;url=${next}"></head>` +
        `<body><p>${text}</p><p><a href="${next}">Continue</a></p></body></html>`,
    );
}

type GetAsked = [service: Service, request: FastifyRequest, reply: FastifyReply];

function get(
  app: FastifyInstance,
  desk: Desk,
  url: string,
  handler: (...asked: GetAsked) => FastifyReply | Promise<FastifyReply>,
): void {
  app.get(url, async (request, reply) => {
    const credential = credentialOf(desk.service, request, 'operator');
    return handler(admitTo(desk, request, reply, credential), request, reply);
  });
}
