import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import type { TSchema } from 'typebox';
import type { Context, Service } from '../context.ts';
import { idAt, newId } from '../ledger/id.ts';
import { accessLog } from '../log.ts';
import type { ObserveCall } from '../monitor/metrics.ts';
import type { RequestTrace } from '../monitor/tracing.ts';
import type { OidcSettings } from '../people/oidc.ts';
import type { Principal } from '../principal.ts';
import { compileSchema } from '../validator.ts';
import { sendRefusal } from './answer.ts';
import { limitConnections } from './connections.ts';
import { serveConsole } from './console.ts';
import { serveDocs } from './docs.ts';
import { bodyText } from './endpoint.ts';
import { type Header, type Headers, headersFor, isForScript } from './headers.ts';
import { closeGracefully, type Drain, NO_DRAIN, serveHealth } from './health.ts';
import { openDesk, PREFIXES } from './operator/desk.ts';
import { sendProblem } from './operator/problems.ts';
import { OPERATOR_APIS, serveOperator } from './operator/routes.ts';
import { serveSessions } from './operator/sessions.ts';
import { AdmissionControl } from './overload.ts';
import { serveDialect } from './routes.ts';
import { rehearsed, type Sandbox, serveSandbox } from './sandbox.ts';
import { VARIANT_A } from './variant-a.ts';
import { VARIANT_B } from './variant-b.ts';
import { BODY_LIMIT_BYTES, checkFrame, prefersHtml, refuseUnrouted, TransportRefusal } from './wire.ts';

const DIALECTS = [VARIANT_A, VARIANT_B];

/** The parts of the server that are printed at its start, each with its title and path. */
export const SERVED: readonly { readonly title: string; readonly prefix: string }[] = DIALECTS;

/** The time limit for receiving a whole request, head and body. */
const REQUEST_TIMEOUT_MS = 30_000;
/** How often that limit is checked. Node's default, half a minute, would extend it to sixty seconds. */
const REQUEST_CHECK_MS = 1_000;
/**
 * Longer than load balancers keep an idle connection (60 s). They close it first, and never send a request
 * into a connection that is being closed.
 */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** The time limit of a connection without traffic: its client has stopped reading a download. */
const SOCKET_TIMEOUT_MS = 120_000;
/**
 * The maximum length of a reference in a path. Node itself refuses a longer request line, and the core
 * refuses text that is not a reference.
 */
const PARAMETER_LENGTH_MAX = 16 * 1024;

/** How clients reach the server. */
type Reach = {
  /** Networks of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[];
  /** How long the server still accepts connections after a request to close; by default not at all. */
  readonly drain?: () => Drain;
  /** The address of the service for browsers; by default the Host of each request. */
  readonly publicUrl?: string | undefined;
  /** The identity provider of the operator's users; requires `publicUrl`. */
  readonly oidc?: OidcSettings | undefined;
  /** Set if this is a sandbox. */
  readonly sandbox?: Sandbox | undefined;
};

/** The data of a request for its line in the access log. */
type Trace = {
  readonly startedAt: number;
  /** The name of the route in the log; undefined: its pattern, which takes a moment to find. */
  route: string | undefined;
  statusCode: string | undefined;
  context: Context | undefined;
  /** The caller of the operator API or the portal, once it is known. */
  principal: Pick<Principal, 'kind' | 'id' | 'merchantId'> | undefined;
  transactionId: string | undefined;
  /** Counts the call; undefined if the route is not an operation, or metrics are off. */
  observe: ObserveCall | undefined;
  spans: RequestTrace | undefined;
};

declare module 'fastify' {
  interface FastifyRequest {
    trace: Trace;
  }
}

/**
 * Builds the server: both variants, their documentation under /docs, /healthz and /readyz. It does not listen
 * yet. Closing it completes accepted requests (health.ts).
 */
export function buildServer(
  service: Service,
  { trustedProxies = [], drain = () => NO_DRAIN, publicUrl, oidc, sandbox }: Reach = {},
): FastifyInstance {
  const nextId = requestIds(service);
  const headers = headersFor(publicUrl);
  const app = Fastify({
    // Fastify's own log lines contain URLs, and therefore references.
    logger: false,
    genReqId: nextId,
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: BODY_LIMIT_BYTES,
    // A start takes as long as the machine needs. After Fastify's default of ten seconds it would fail.
    pluginTimeout: 0,
    return503OnClosing: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionTimeout: SOCKET_TIMEOUT_MS,
    http: {
      // Node would answer without a body. `checkFrame` answers in JSON.
      requireHostHeader: false,
      // Node applies the lower of the two limits to the head. The default for the head is a minute.
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: REQUEST_CHECK_MS,
    },
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    frameworkErrors: (error, request, reply) => answerUndecoded(service, headers, error, request, reply),
    clientErrorHandler: (error, socket) => answerUnparsed(service, headers, nextId(), error, socket),
  });
  limitConnections(app.server, service.log, trustedProxies);
  // Expectations other than 100-continue are ignored. The method CONNECT is unknown.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  app.server.on('connect', (_request, socket: Socket) => {
    writeRaw(socket, 405, [['x-request-id', nextId()], ['allow', 'GET, HEAD, POST'], ...headers.browsers]);
  });

  app.setValidatorCompiler<TSchema>(({ schema }) => compileSchema(schema));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.decorateRequest('trace');
  app.decorateRequest('countedFor');
  const isDraining = closeGracefully(app, drain);
  followRequests(app, service, headers);
  serveHealth(app, service, isDraining);
  const admission = new AdmissionControl();
  for (const dialect of DIALECTS) {
    const serving = { service, admission, dialect, refuse: sendRefusal };
    serveDialect(app, sandbox ? rehearsed(serving) : serving);
  }
  if (sandbox) serveSandbox(app, sandbox);
  const desk = openDesk(service, publicUrl);
  app.addHook('onClose', desk.close);
  serveOperator(app, desk);
  serveSessions(app, desk, oidc);
  serveEntrance(app);
  serveConsole(app, service);
  serveDocs(app, DIALECTS, OPERATOR_APIS);
  return app;
}

/** Redirects a browser from `/` to the console. For other clients `/` is an unknown path. */
function serveEntrance(app: FastifyInstance): void {
  app.get('/', (request, reply) => {
    if (!prefersHtml(request.headers.accept)) throw new TransportRefusal('98', 404);
    return reply.header('vary', 'accept').redirect('/console/', 302);
  });
}

/** Gives every request a trace and a log line, and refuses requests that match no route. */
function followRequests(app: FastifyInstance, service: Service, headers: Headers): void {
  const routes: { method: string; url: string }[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, url });
  });
  const log = accessLog(service.log);
  app.addHook('onRequest', (request, reply, done) => {
    beginTrace(log, headers, request, reply);
    // Before the body is read: the server does not wait for the body of an unknown path.
    done(
      checkFrame(request.raw) ?? (request.is404 ? refuseUnrouted(request.raw.url ?? '', routes) : undefined),
    );
  });
  app.setErrorHandler((error, request, reply) => {
    if ([request.raw.url, request.routeOptions.url].some(isOperatorPath))
      sendProblem(service, request, reply, error);
    else sendRefusal(service, request, reply, error, {});
  });
}

/** Whether errors of a path are problem documents: those of the operator API and the portal, known or not. */
function isOperatorPath(url = ''): boolean {
  const [path = ''] = url.split('?');
  return Object.values(PREFIXES).some((prefix) => `${path}/`.startsWith(`${prefix}/`));
}

/**
 * Returns a generator of request ids: UUIDs of version 7, which begin with the time of the request. A
 * client's X-Request-Id is not used: it could contain anything, and would appear in the log.
 */
function requestIds({ clock }: Service): () => string {
  return () => {
    const now = clock();
    return idAt(newId(now), now);
  };
}

const TILL_PATHS = DIALECTS.map(({ prefix }) => `${prefix}/`);
const isOfTill = ({ raw: { url = '' } }: FastifyRequest) => TILL_PATHS.some((path) => url.startsWith(path));

/**
 * Starts the trace of a request: sets the headers of every answer, and writes the request's line to the
 * access log when it ends, whether it was answered or its client disconnected.
 */
function beginTrace(
  log: ReturnType<typeof accessLog>,
  { tills, scripts, browsers }: Headers,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  // Once the connection is closed, it has no address.
  const address = request.ip;
  request.trace = {
    startedAt: performance.now(),
    route: undefined,
    statusCode: undefined,
    context: undefined,
    principal: undefined,
    transactionId: undefined,
    observe: undefined,
    spans: undefined,
  };
  reply.header('x-request-id', request.id);
  const headers = isOfTill(request) ? tills : isForScript(request.headers) ? scripts : browsers;
  for (const [name, value] of headers) reply.header(name, value);
  reply.raw.once('close', () => {
    const { startedAt, route, statusCode, context, principal, transactionId, observe, spans } = request.trace;
    const merchantId = context?.merchant.id ?? principal?.merchantId ?? undefined;
    const durationMs = performance.now() - startedAt;
    observe?.(statusCode ?? 'aborted', durationMs);
    spans?.end({ httpStatus: reply.raw.statusCode, statusCode, merchantId, transactionId });
    // The line contains no path, header, body or reference.
    log({
      requestId: request.id,
      method: request.method,
      // Never the path, which contains references.
      route: route ?? request.routeOptions.url,
      httpStatus: reply.raw.statusCode,
      statusCode,
      address,
      merchantId,
      keyId: context?.keyId,
      principal: principal && `${principal.kind} ${principal.id}`,
      transactionId,
      durationMs: Math.round(durationMs * 1000) / 1000,
      aborted: !reply.raw.writableEnded,
    });
  });
}

/** Answers a path that cannot be decoded. Fastify runs no hooks for it. */
function answerUndecoded(
  service: Service,
  headers: Headers,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  beginTrace(accessLog(service.log), headers, request, reply);
  sendRefusal(service, request, reply, error, {});
}

/** Answers bytes that are not HTTP, and requests that did not arrive in time. */
function answerUnparsed(
  service: Service,
  headers: Headers,
  requestId: string,
  error: Error & { code?: string },
  socket: Socket,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const address = socket.remoteAddress;
  service.log.info({ requestId, httpStatus: status, statusCode: '98', address }, 'request');
  writeRaw(socket, status, [['x-request-id', requestId], ...headers.browsers]);
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/** How long a client may take to read an answer to what is not HTTP, and to close its side. */
const LINGER_MS = 1_000;

function writeRaw(socket: Socket, status: number, headers: readonly Header[]): void {
  const body = bodyText('98', 'Unsupported request');
  const all: readonly Header[] = [
    ['content-type', 'application/json; charset=utf-8'],
    ['content-length', String(Buffer.byteLength(body))],
    ...headers,
    ['connection', 'close'],
  ];
  const head = all.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${status} ${REASONS[status]}\r\n${head}\r\n${body}`);
  // A client that does not close its side would hold the connection for ever.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
