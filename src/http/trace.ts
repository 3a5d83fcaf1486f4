import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { accessLog } from '../log.ts';

type AccessLog = ReturnType<typeof accessLog>;

/** What is known of a request while it is served, for its line in the access log. */
type Trace = {
  readonly startedAt: number;
  /** The pattern of the route, never the address: that holds references. */
  route: string | undefined;
  statusCode: string | undefined;
  context: Context | undefined;
  transactionId: string | undefined;
};

declare module 'fastify' {
  interface FastifyRequest {
    trace: Trace;
  }
}

/**
 * Makes the ids of requests: a random part for the process, and a number. A client's own X-Request-Id is not taken over:
 * it could hold anything, and ends up in the log.
 */
export function requestIds(): () => string {
  const process = randomBytes(8).toString('hex');
  let last = 0;
  return () => `${process}-${(++last).toString(36)}`;
}

/**
 * Begins to follow a request: sets the headers that every response has, and writes its line in the access log when it is
 * over, whether it was answered or its client went away.
 */
export function beginTrace(log: AccessLog, request: FastifyRequest, reply: FastifyReply): void {
  request.trace = {
    startedAt: performance.now(),
    route: undefined,
    statusCode: undefined,
    context: undefined,
    transactionId: undefined,
  };
  reply.header('x-request-id', request.id);
  reply.header('cache-control', 'no-store');
  // It closes once, and a listener that takes itself off costs more than one that stays.
  reply.raw.on('close', () => logAccess(log, request, reply));
}

/** Writes the one line of a request: no address, no header, no body, no reference. */
function logAccess(log: AccessLog, request: FastifyRequest, reply: FastifyReply): void {
  const { startedAt, route, statusCode, context, transactionId } = request.trace;
  log({
    requestId: request.id,
    method: request.method,
    route,
    httpStatus: reply.raw.statusCode,
    statusCode,
    merchantId: context?.merchant.id,
    keyId: context?.keyId,
    transactionId,
    durationMs: Math.round((performance.now() - startedAt) * 1000) / 1000,
    aborted: !reply.raw.writableEnded,
  });
}
