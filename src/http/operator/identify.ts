import type { FastifyRequest } from 'fastify';
import type { Service } from '../../context.ts';
import type { Principal } from '../../operator/principal.ts';
import { Problem } from '../../operator/problem.ts';
import { findToken } from '../../operator/tokens.ts';

/** Longer than any token of ours. */
const HEADER_LENGTH_MAX = 200;

/** Who sent a request, by its bearer token. @throws Problem `unauthorized`, the same whatever is wrong with the token */
export async function identifyPrincipal(service: Service, request: FastifyRequest): Promise<Principal> {
  const { authorization = '' } = request.headers;
  const [, text] =
    (authorization.length <= HEADER_LENGTH_MAX && /^Bearer +(\S+) *$/i.exec(authorization)) || [];
  const token = text === undefined ? undefined : await findToken(service, text, request.ip);
  if (!token) throw new Problem('unauthorized');
  return {
    kind: 'token',
    id: String(token.id),
    name: token.name,
    roles: token.roles,
    merchantId: token.merchantId,
    origin: request.ip,
    requestId: request.id,
    steppedUp: token.stepUp,
  };
}
