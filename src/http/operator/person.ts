import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TObject } from 'typebox';
import type { Service } from '../../context.ts';
import { Problem } from '../../operator/problem.ts';
import { checkInput } from '../../operator/validate.ts';
import { type Door, findSession, type Origin } from '../../people/sessions.ts';
import { JSON_TYPE } from '../answer.ts';
import { checkHead, parseJson } from '../wire.ts';
import { readCookie } from './cookies.ts';
import { sendProblem } from './problems.ts';
import { requireSameOrigin } from './same-origin.ts';

/** Routes that answer people in browsers: of this origin only, by the cookies that it set. */

const PREFIXES = { operator: '/operator/v1', portal: '/portal/v1' } as const;

export type SessionReach = {
  /** Where browsers reach the service; undefined where that is the Host that they name. */
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

/** The token of a sign-in that has begun in this browser. @throws Problem `unauthorized` */
export function requireBegun({ door }: Serving, request: FastifyRequest): string {
  const begun = readCookie(request, 'begun', door);
  if (!begun) throw new Problem('unauthorized', 'the sign-in has expired: begin again');
  return begun;
}

/** The origin of the page that asks, which is our own (same-origin.ts). */
export const originOfPage = ({ headers }: FastifyRequest) => String(headers.origin);

/** The session of a request, and its token. @throws Problem `unauthorized` */
export async function requireSession({ service, door }: Serving, request: FastifyRequest) {
  const token = readCookie(request, 'session', door);
  const session = token === undefined ? undefined : await findSession(service, token, door);
  if (!token || !session) throw new Problem('unauthorized', 'sign in first: the session has ended');
  return { session, token };
}

/** Where a request comes from. */
export const originOf = ({ ip, headers, id }: FastifyRequest): Origin => ({
  address: ip,
  agent: headers['user-agent'] ?? 'unknown',
  requestId: id,
});

/** Adds a route. What it returns is answered as JSON; undefined as 204. */
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
