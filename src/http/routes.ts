import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify';
import type { Allowance } from '../api-keys/authenticate.ts';
import { admit, type Caller, identify } from '../api-keys/authenticate.ts';
import type { Service } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { sendAnswer, type sendRefusal } from './answer.ts';
import { type Dialect, type Endpoint, Envelope } from './endpoint.ts';
import { fieldErrors, fieldsOf } from './field-errors.ts';
import type { AdmissionControl } from './overload.ts';
import { checkHead, parseJson, TransportRefusal } from './wire.ts';

export type Serving = {
  readonly service: Service;
  readonly admission: AdmissionControl;
  readonly dialect: Dialect;
  /** Answers a request that failed. */
  readonly refuse: typeof sendRefusal;
};

/** Serves the endpoints of a dialect below its prefix. */
export function serveDialect(app: FastifyInstance, serving: Serving): void {
  for (const endpoint of serving.dialect.endpoints) serveEndpoint(app, serving, endpoint);
}

/**
 * Adds the route of an endpoint. A request is checked in the order of precedence: route, media type and
 * length (98), the caller and its permission (01, 97, 04), the body (30), and then by the endpoint itself.
 */
function serveEndpoint(app: FastifyInstance, serving: Serving, endpoint: Endpoint): void {
  const { service, admission, dialect, refuse } = serving;
  const { method, body, otherMediaTypes = [], check, notFound } = endpoint;
  const url = dialect.prefix + endpoint.path;
  const mediaTypes = ['application/json', ...otherMediaTypes];
  const { tracing } = service;
  const named = { operation: endpoint.operationId, variant: dialect.name.replace('variant-', '') };
  const observe = service.metrics?.call(named.variant, named.operation);
  const manner = { statuses: dialect.statuses, notFound, fields: fieldsOf(endpoint) };

  app.route({
    method,
    url,
    schema: { ...(body && { body }), response: { 200: Envelope(endpoint.data) } },
    attachValidation: true,
    onRequest(request: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction) {
      request.trace.route = url;
      request.trace.observe = observe;
      if (tracing) request.trace.spans = tracing.request({ ...named, ...incoming(request, url) });
      // `/vouchers/` is not a path with an empty reference.
      const isNoPath = (request.params as { reference?: string }).reference === '';
      done(isNoPath ? new TransportRefusal('98', 404) : body && checkHead(request.headers, mediaTypes));
    },
    preValidation: (request, reply, done) => authenticate(serving, endpoint, request, reply, done),
    async handler(request, reply) {
      const errors = request.validationError ? fieldErrors(request.validationError.validation ?? []) : [];
      if (check) errors.push(...check(request.body));
      if (errors.length > 0) throw new Refusal('30', { errors });
      const { reference = '' } = request.params as { reference?: string };
      const context = request.trace.context;
      if (!context) throw new Error('a request was not authenticated');
      const run = () => endpoint.run(context, request.body as never, reference);
      const answer = await (request.trace.spans ? request.trace.spans.run(run) : run());
      return sendAnswer(service, request, reply, answer as never);
    },
    errorHandler(error, request, reply) {
      refuse(service, request, reply, error, manner);
    },
    // The request's work is done. A download that streams for an hour does not count.
    onSend(request, _reply, payload, done) {
      admission.leave(request);
      done(null, payload);
    },
  });
}

/** Returns the data of a request for its trace. The traceparent counts only from one of our proxies. */
function incoming(request: FastifyRequest, route: string) {
  const { traceparent } = request.headers;
  return {
    method: request.method,
    route,
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    isTrusted: (request.ips?.length ?? 0) > 1,
  };
}

/**
 * Admits a request whose body was read (`91`), authenticates it (`01`, `97`, `04`), and parses the body
 * (`30`).
 *
 * It uses callbacks: a known key needs no waiting, and a promise in each hook took a twentieth of a balance
 * enquiry.
 */
function authenticate(
  { service, admission }: Serving,
  { body, carriesPin = false }: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  const accept = (caller: Caller) => {
    // The access log names the caller from here on, even if the call is refused.
    request.trace.context = caller.context;
    if (caller.allowance) setLimitHeaders(reply, caller.allowance);
    admit(caller, carriesPin);
    admission.recognize(request, caller.context.merchant);
    if (body) request.body = parseJson(request.body as Buffer | undefined);
  };
  const fail = (error: unknown) => {
    if (error instanceof Refusal && error.code === '01') admission.forget(request);
    // In the next turn: with more than 1,024 busy sockets, the event loop reads up to 48 times as many
    // requests before it does anything else, and clients that are refused at once would add their next
    // requests to them.
    setImmediate(() => done(error as Error));
  };
  try {
    admission.enter(request);
    const caller = identify(service, request.headers.authorization, request);
    if (caller instanceof Promise) {
      caller.then(accept).then(() => done(), fail);
      return;
    }
    accept(caller);
  } catch (error) {
    fail(error);
    return;
  }
  done();
}

/**
 * Sets the headers of draft-ietf-httpapi-ratelimit-headers-11: the quota and its window, the remaining calls,
 * and the seconds until the quota is full again.
 */
function setLimitHeaders(reply: FastifyReply, { limit, remaining, resetSeconds }: Allowance): void {
  const windowSeconds = Math.ceil(limit.burst / limit.perSecond);
  reply.header('ratelimit-policy', `"key";q=${limit.burst};w=${windowSeconds}`);
  reply.header('ratelimit', `"key";r=${remaining};t=${resetSeconds}`);
}
