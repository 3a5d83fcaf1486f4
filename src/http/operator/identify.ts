import type { FastifyReply, FastifyRequest } from 'fastify';
import { recordRefusal } from '../../audit/refusals.ts';
import type { Service } from '../../context.ts';
import { type Door, findSession, nameOfUser } from '../../people/sessions.ts';
import { findToken, findTokenId, isToken } from '../../people/tokens.ts';
import type { PortalRole, Principal, Role } from '../../principal.ts';
import { Problem } from '../../problem.ts';
import { admitTo, type Desk } from './desk.ts';
import { credentialOf, isBackground, readCookie, requireSameOrigin } from './person.ts';

/** Longer than any token of ours. */
const HEADER_LENGTH_MAX = 200;

/**
 * Admits a request, and identifies its sender: a machine by its bearer token, or a person by a session's
 * cookie, which is accepted only from our own pages.
 * @throws Problem `unauthorized`, the same for every fault of the token or the session; `forbidden` for a
 *   page of another site
 */
export async function identifyPrincipal(
  desk: Desk,
  request: FastifyRequest,
  reply: FastifyReply,
  door: Door,
): Promise<Principal> {
  admitTo(desk, request, reply, credentialIn(desk.service, request, door).credential);
  return identifyAgain(desk, request, door, isBackground(request));
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
 * @param isQuiet whether the request does not restart the idle time of a session
 */
export async function identifyAgain(
  { service, publicUrl }: Desk,
  request: FastifyRequest,
  door: Door,
  isQuiet = true,
): Promise<Principal> {
  const { cookie, credential } = credentialIn(service, request, door);
  if (cookie !== undefined) requireSameOrigin(request, publicUrl);
  const principal =
    cookie === undefined
      ? await identifyMachine(service, request, credential)
      : await identifyPerson(service, request, cookie, door, isQuiet);
  if (!principal) throw new Problem('unauthorized');
  request.trace.principal = principal;
  return principal;
}

/** Returns the token in an Authorization header, if this service has made it. */
function tokenOf(service: Service, authorization = ''): string | undefined {
  const [, text] =
    (authorization.length <= HEADER_LENGTH_MAX && /^Bearer +(\S+) *$/i.exec(authorization)) || [];
  return text !== undefined && isToken(service, text) ? text : undefined;
}

const sentBy = ({ ip, id }: FastifyRequest) => ({ origin: ip, requestId: id });

async function identifyMachine(
  service: Service,
  request: FastifyRequest,
  text: string,
): Promise<Principal | undefined> {
  const token = await findToken(service, text, request.ip);
  if (token) {
    const { id, userId, name, roles, stepUp: steppedUp } = token;
    const merchantId = token.merchantId === null ? null : Number(token.merchantId);
    return { kind: 'token', id, userId, name, roles, merchantId, steppedUp, ...sentBy(request) };
  }
  // A session that has ended is nothing unusual. A token that is used after its end may have been copied.
  recordRefusal(service, {
    action: 'token.refused',
    subject: `token ${await findTokenId(service, text)}`,
    actor: null,
    address: request.ip,
    requestId: request.id,
    by: null,
  });
  return undefined;
}

async function identifyPerson(
  service: Service,
  request: FastifyRequest,
  cookie: string,
  door: Door,
  isQuiet: boolean,
): Promise<Principal | undefined> {
  const session = await findSession(service, cookie, door, isQuiet);
  if (!session) return undefined;
  const { id: userId, email, merchantId } = session.user;
  const name = nameOfUser(email, merchantId);
  const roles = session.user.roles as (Role | PortalRole)[];
  const steppedUp = session.steppedUpUntil !== null;
  return { kind: 'user', id: String(userId), userId, name, roles, merchantId, steppedUp, ...sentBy(request) };
}
