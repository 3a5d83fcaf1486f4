import type { FastifyRequest } from 'fastify';
import type { Service } from '../../context.ts';
import type { PortalRole, Principal, Role } from '../../operator/principal.ts';
import { Problem } from '../../operator/problem.ts';
import { findToken } from '../../operator/tokens.ts';
import { type Door, findSession } from '../../people/sessions.ts';
import { readCookie } from './cookies.ts';
import { requireSameOrigin } from './same-origin.ts';

/** Longer than any token of ours. */
const HEADER_LENGTH_MAX = 200;

/**
 * Who sent a request: a machine by its bearer token, or a person by the cookie of a session, from a page of
 * ours only.
 * @param publicUrl where browsers reach the service; undefined where that is the Host that they name
 * @throws Problem `unauthorized`, the same whatever is wrong with the token or the session; `forbidden` for a
 *   page of another site
 */
export async function identifyPrincipal(
  service: Service,
  request: FastifyRequest,
  door: Door,
  publicUrl: string | undefined,
): Promise<Principal> {
  const cookie =
    request.headers.authorization === undefined ? readCookie(request, 'session', door) : undefined;
  const principal =
    cookie === undefined
      ? await identifyMachine(service, request)
      : await identifyPerson(service, request, door, cookie, publicUrl);
  if (!principal) throw new Problem('unauthorized');
  return principal;
}

async function identifyMachine(service: Service, request: FastifyRequest): Promise<Principal | undefined> {
  const { authorization = '' } = request.headers;
  const [, text] =
    (authorization.length <= HEADER_LENGTH_MAX && /^Bearer +(\S+) *$/i.exec(authorization)) || [];
  const token = text === undefined ? undefined : await findToken(service, text, request.ip);
  return (
    token && {
      kind: 'token',
      id: String(token.id),
      userId: token.userId,
      name: token.name,
      roles: token.roles,
      merchantId: token.merchantId,
      origin: request.ip,
      requestId: request.id,
      steppedUp: token.stepUp,
    }
  );
}

async function identifyPerson(
  service: Service,
  request: FastifyRequest,
  door: Door,
  cookie: string,
  publicUrl: string | undefined,
): Promise<Principal | undefined> {
  requireSameOrigin(request, publicUrl);
  const session = await findSession(service, cookie, door);
  return (
    session && {
      kind: 'user',
      id: String(session.user.id),
      userId: session.user.id,
      name: session.user.email,
      roles: session.user.roles as (Role | PortalRole)[],
      merchantId: session.user.merchantId,
      origin: request.ip,
      requestId: request.id,
      steppedUp: session.steppedUpUntil !== null,
    }
  );
}
