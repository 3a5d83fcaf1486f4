import type { Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Service } from '../context.ts';
import { accessLog } from '../log.ts';
import { sendRefusal } from './answer.ts';
import { parseDateTime } from './date-time.ts';
import { serveDocs } from './docs.ts';
import { closeGracefully } from './drain.ts';
import { refusalText } from './envelope.ts';
import { serveHealth } from './health.ts';
import { AdmissionControl } from './overload.ts';
import { serveDialect } from './routes.ts';
import { beginTrace, requestIds } from './trace.ts';
import { BODY_LIMIT_BYTES, judgeRoute } from './transport.ts';
import { VARIANT_A } from './variant-a/routes.ts';
import { VARIANT_B } from './variant-b/routes.ts';

const DIALECTS = [VARIANT_A, VARIANT_B];

/** What is served, for who starts the service: a title and the path of each. */
export const SERVED: readonly { readonly title: string; readonly prefix: string }[] = DIALECTS;

/** The whole request has to be there by then, */
const REQUEST_TIMEOUT_MS = 30_000;
/** which is looked at this often: Node's own half a minute would make it up to sixty seconds. */
const REQUEST_LOOK_MS = 1_000;
/** Longer than what load balancers keep an idle connection for (60 s), so that they close it, and never into a request. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** A connection on which nothing moves: a client that stopped reading its download. */
const SOCKET_TIMEOUT_MS = 120_000;
/** Far above what a process can serve at once; a bound on memory. */
const MOST_CONNECTIONS = 10_000;
/** A reference in a path: Node ends a longer request line itself. What is no reference is told so by the core. */
const LONGEST_PARAMETER = 16 * 1024;

/** How a server is reached. */
export type Reach = {
  /** Networks of proxies whose X-Forwarded-For is believed: the address of a caller behind them is what it says. */
  readonly trustedProxies?: readonly string[];
  /** How long the server still accepts connections once it is asked to close; left out: not at all. */
  readonly graceMs?: number;
};

/**
 * Builds the server: both variants, their documentation under /docs, /healthz and /readyz. It does not listen.
 * Closing it finishes what was accepted.
 */
export function buildServer(service: Service, { trustedProxies = [], graceMs = 0 }: Reach = {}): FastifyInstance {
  const nextId = requestIds();
  const app = Fastify({
    // Fastify's own log lines hold addresses, and with them references. trace.ts writes the access log.
    logger: false,
    genReqId: nextId,
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: BODY_LIMIT_BYTES,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionTimeout: SOCKET_TIMEOUT_MS,
    // A request without Host is answered like any other, in JSON, rather than by Node with an empty 400.
    http: {
      requireHostHeader: false,
      // Node exchanges the two limits where that of the head is the greater one, and its own is a minute: bodies then had as long.
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: REQUEST_LOOK_MS,
    },
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    ajv: {
      customOptions: {
        allErrors: true,
        coerceTypes: false,
        useDefaults: false,
        removeAdditional: false,
        allowUnionTypes: true,
        // 1e999 is a number, and a bad amount: the core refuses it.
        strictNumbers: false,
      },
      onCreate(ajv) {
        ajv.addFormat('date-time', (text: string) => parseDateTime(text) !== undefined);
      },
    },
    frameworkErrors: (error, request, reply) => answerUnrouted(service, error, request, reply),
    clientErrorHandler: (error, socket) => answerUnparsed(service, nextId(), error, socket),
  });
  app.server.maxConnections = MOST_CONNECTIONS;
  // Expectations other than 100-continue are ignored, and this server does not know the method CONNECT.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  app.server.on('connect', (_request, socket) => writeRaw(socket as Socket, 405, nextId(), 'Allow: GET, POST\r\n'));

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  const isDraining = closeGracefully(app, graceMs);
  followRequests(app, service);
  serveHealth(app, service, isDraining);
  app.decorateRequest('countedFor');
  const admission = new AdmissionControl();
  for (const dialect of DIALECTS) serveDialect(app, service, admission, dialect);
  serveDocs(app, DIALECTS);
  return app;
}

/** Every request has a trace and a line in the log; one that no route matches ends here. */
function followRequests(app: FastifyInstance, service: Service): void {
  const routes: { method: string; url: string }[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, url });
  });
  const log = accessLog(service.log);
  app.addHook('onRequest', (request, reply, done) => {
    beginTrace(log, request, reply);
    // Before the body is read: nobody waits for what nobody takes.
    done(request.is404 ? judgeRoute(request.raw.url ?? '', routes) : undefined);
  });
  app.setErrorHandler((error, request, reply) => {
    sendRefusal(service, request, reply, error, {});
  });
  app.decorateRequest('trace');
}

/** A path that cannot even be decoded; Fastify runs no hooks for it. */
function answerUnrouted(service: Service, error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  beginTrace(accessLog(service.log), request, reply);
  sendRefusal(service, request, reply, error, {});
}

/** What is not HTTP, or took too long to become a request. */
function answerUnparsed(service: Service, requestId: string, error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  service.log.info({ requestId, httpStatus: status, statusCode: '98' }, 'request');
  writeRaw(socket, status, requestId);
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

function writeRaw(socket: Socket, status: number, requestId: string, headers = ''): void {
  const body = refusalText('98', 'Unsupported request');
  socket.end(
    `HTTP/1.1 ${status} ${REASONS[status]}\r\n${headers}Content-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${requestId}\r\nCache-Control: no-store\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
}
