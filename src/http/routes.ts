import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify';
import type { Service } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { sendAnswer, sendRefusal } from './answer.ts';
import { authenticateRequest } from './authenticate.ts';
import type { Dialect, Endpoint } from './endpoint.ts';
import { Envelope } from './envelope.ts';
import { fieldErrors, fieldsOf } from './field-errors.ts';
import type { AdmissionControl } from './overload.ts';
import { parseJson } from './parse-json.ts';
import { judgeHead, TransportRefusal } from './transport.ts';

/** Serves the endpoints of a dialect below its prefix. */
export function serveDialect(
  app: FastifyInstance,
  service: Service,
  admission: AdmissionControl,
  dialect: Dialect,
): void {
  for (const endpoint of dialect.endpoints) serveEndpoint(app, service, admission, dialect, endpoint);
}

/**
 * A request passes its gates in the order of precedence: route, media type and length (98), who asks and whether that
 * one may (01, 97, 04), the body (30), and then the endpoint itself.
 */
function serveEndpoint(
  app: FastifyInstance,
  service: Service,
  admission: AdmissionControl,
  dialect: Dialect,
  endpoint: Endpoint,
): void {
  const { method, body, otherMediaTypes = [], carriesPin = false, check, notFound } = endpoint;
  const url = dialect.prefix + endpoint.path;
  const mediaTypes = ['application/json', ...otherMediaTypes];
  const manner = { statuses: dialect.statuses, notFound, fields: fieldsOf(endpoint) };

  app.route({
    method,
    url,
    schema: { ...(body && { body }), response: { 200: Envelope(endpoint.data) } },
    attachValidation: true,
    onRequest(request: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction) {
      request.trace.route = url;
      // A path that ends where the reference should begin is the path of nothing.
      const isNoPath = (request.params as { reference?: string }).reference === '';
      done(isNoPath ? new TransportRefusal('98', 404) : body && judgeHead(request.headers, mediaTypes));
    },
    // By callback: a promise for each hook of each request was a twentieth of what a balance enquiry costs.
    preValidation(request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) {
      const goOn = () => {
        if (request.trace.context) admission.recognize(request, request.trace.context.merchant);
        if (body) request.body = parseJson(request.body as Buffer | undefined);
      };
      const fail = (error: unknown) => {
        if (error instanceof Refusal && error.code === '01') admission.forget(request);
        // In the next turn. With more than 1,024 busy sockets the event loop reads up to 48 times as many requests before it
        // does anything else, and clients that are refused at once send their next request into that.
        setImmediate(done, error);
      };
      try {
        admission.enter(request);
        const waiting = authenticateRequest(service, request, reply, carriesPin);
        if (waiting) {
          waiting.then(goOn).then(() => done(), fail);
          return;
        }
        goOn();
      } catch (error) {
        fail(error);
        return;
      }
      done();
    },
    async handler(request, reply) {
      const errors = request.validationError ? fieldErrors(request.validationError.validation ?? []) : [];
      if (check) errors.push(...check(request.body));
      if (errors.length > 0) throw new Refusal('30', { errors });
      const { reference = '' } = request.params as { reference?: string };
      const context = request.trace.context;
      if (!context) throw new Error('a request came this far without having been authenticated');
      const answer = await endpoint.run(context, request.body as never, reference);
      return sendAnswer(service, request, reply, answer as never);
    },
    errorHandler(error, request, reply) {
      sendRefusal(service, request, reply, error, manner);
    },
    // The work is done: a download that streams for an hour does not count.
    onSend(request, _reply, payload, done) {
      admission.leave(request);
      done(null, payload);
    },
  });
}
