import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Service } from '../../context.ts';
import { Problem, type ProblemCode } from '../../problem.ts';
import { type FieldError, REFUSALS, Refusal, type RefusalCode } from '../../refusal.ts';
import { toRefusal } from '../answer.ts';
import { bodyTooLarge, TransportRefusal } from '../wire.ts';

/** Errors in the format of RFC 9457: `application/problem+json` with `code` and `requestId`. */

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

export const PROBLEM_STATUSES: Readonly<Record<ProblemCode, number>> = {
  unauthorized: 401,
  forbidden: 403,
  'step-up-required': 403,
  'approval-required': 403,
  invalid: 400,
  'not-found': 404,
  gone: 410,
  exists: 409,
  conflict: 409,
  'idempotency-key-reused': 409,
  'in-progress': 409,
  'effect-changed': 409,
  'too-many-requests': 429,
};

/** The statuses of the core's refusals. Transport refusals have their own status. */
export const REFUSAL_STATUSES: Readonly<Record<RefusalCode, number>> = {
  '98': 404,
  '01': 401,
  '97': 429,
  '04': 409,
  '30': 400,
  '18': 400,
  '16': 400,
  '13': 400,
  '17': 400,
  '03': 409,
  '15': 400,
  '61': 400,
  '94': 409,
  '14': 404,
  '75': 409,
  '55': 409,
  '44': 409,
  '43': 409,
  '54': 409,
  '40': 409,
  '41': 409,
  '47': 409,
  '42': 409,
  '58': 409,
  '51': 409,
  '50': 409,
  '60': 404,
  '91': 503,
};

type Described = {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail?: string;
  readonly errors?: readonly FieldError[] | undefined;
};

function describe(error: unknown): Described {
  if (error instanceof Problem) {
    const { code, title, message: detail, errors, details } = error;
    return { ...details, status: PROBLEM_STATUSES[code], code, title, detail, errors };
  }
  if (error instanceof Refusal) {
    const { code, message: detail, errors } = error;
    const status = error instanceof TransportRefusal ? error.httpStatus : REFUSAL_STATUSES[code];
    return { status, code, title: REFUSALS[code], detail, errors };
  }
  return { status: 500, code: '96', title: 'Internal error' };
}

/** Returns the error itself, or the refusal that caused it. */
function known({ raw, routeOptions }: FastifyRequest, thrown: unknown): unknown {
  if (thrown instanceof Problem) return thrown;
  if ((thrown as { code?: unknown }).code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return bodyTooLarge(routeOptions.bodyLimit);
  return toRefusal(thrown, raw.errored === null) ?? thrown;
}

/** Returns how long a client has to wait: until a lock ends, or a moment if the service is busy. */
function waitSecondsOf(error: unknown): number {
  const known = error instanceof Problem || error instanceof Refusal ? error.retryAfterSeconds : undefined;
  return Math.max(1, Math.ceil(known ?? 1));
}

/** Answers with the problem that caused an error. A bug is logged. */
export function sendProblem(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  thrown: unknown,
): void {
  const error = known(request, thrown);
  const { status, ...problem } = describe(error);
  if (status === 500) service.log.error({ requestId: request.id, err: error }, 'a request failed');
  service.readiness.refused(thrown);
  request.trace.statusCode = problem.code;
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  if (status === 503 || status === 429) reply.header('retry-after', String(waitSecondsOf(error)));
  if (error instanceof TransportRefusal && error.allow) reply.header('allow', error.allow);
  reply
    .code(status)
    .type(PROBLEM_TYPE)
    .send(JSON.stringify({ type: 'about:blank', ...problem, status, requestId: request.id }));
}
