import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Logger } from '../log.ts';

export type { Span };

/**
 * Traces by OpenTelemetry: a call over HTTP, its wait in the batcher, the statement, and the webhook. They
 * are loaded only if an endpoint is set. A span never contains a code, a reference or a URL.
 */

/** The parts of the service report to this object. It is absent if traces are off. */
export type Tracing = {
  /** Starts the trace of a request. */
  request(request: Incoming): RequestTrace;
  /** Returns the span of the request that is being served. */
  current(): Span | undefined;
  /** Records that the requests that waited since `addedAt` are sent to the database as one call. */
  batched(waited: readonly Waited[]): StatementTrace;
  /** Starts the span of an attempt to deliver an event. */
  attempt(event: Sent): AttemptTrace;
  /** Exports the remaining spans and stops. */
  stop(): Promise<void>;
};

type Incoming = {
  readonly method: string;
  /** The pattern of the route, never the path. */
  readonly route: string;
  readonly operation: string;
  readonly variant: string;
  /** The header as sent by the client or by the proxy in front of it. */
  readonly traceparent: string | undefined;
  /** Whether the header comes from one of our proxies. Then its trace is continued. */
  readonly isTrusted: boolean;
};

export type RequestTrace = {
  /** Serves the request within its trace. */
  run<Result>(serve: () => Result): Result;
  end(result: {
    readonly httpStatus: number;
    readonly statusCode: string | undefined;
    readonly merchantId: number | undefined;
    readonly transactionId: string | undefined;
  }): void;
};

type Waited = { readonly span: Span | undefined; readonly addedAt: number };
export type StatementTrace = { end(error?: unknown): void };

type Sent = {
  readonly eventId: string;
  readonly type: string;
  readonly endpointId: number;
  readonly attempt: number;
};
type AttemptTrace = { end(status: number | null, error: string | null): void };

const STOP_MS = 2_000;

/**
 * The webhooks of a redemption or activation are a separate trace. Its id is that of the event, which is the
 * id of the transaction. The trace of the call can therefore link to it, whichever process sends them.
 */
class Ids implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #next: { readonly traceId: string; readonly spanId: string | undefined } | undefined;

  generateTraceId = (): string => this.#next?.traceId ?? this.#random.generateTraceId();
  generateSpanId = (): string => this.#next?.spanId ?? this.#random.generateSpanId();

  /** Creates one span with these ids. */
  with<Result>(traceId: string, spanId: string | undefined, start: () => Result): Result {
    this.#next = { traceId, spanId };
    try {
      return start();
    } finally {
      this.#next = undefined;
    }
  }
}

const hexOf = (eventId: string) => eventId.replaceAll('-', '');
const SPAN_DIGITS = 16;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/**
 * Starts the traces of this process. The client of OpenTelemetry reads its endpoint, headers and sampler
 * from the environment (OTEL_…).
 */
export function startTracing(
  version: string,
  log: Logger,
  exporter: SpanExporter = new OTLPTraceExporter(),
): Tracing {
  const ids = new Ids();
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'scrip', 'service.version': version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    idGenerator: ids,
    spanProcessors: [new BatchSpanProcessor(reporting(exporter, log))],
  });
  const tracer = provider.getTracer('scrip', version);
  const serving = new AsyncLocalStorage<Span>();
  return {
    request: (request) => beginRequest(tracer, serving, request),
    current: () => serving.getStore(),
    batched: (waited) => beginStatements(tracer, waited),
    attempt({ eventId, type, endpointId, attempt }) {
      const { traceId, spanId } = eventContext(eventId);
      const attributes = { 'scrip.event': type, 'scrip.endpoint': endpointId, 'scrip.attempt': attempt };
      // The trace of the call links to the span of the first attempt.
      const span = ids.with(traceId, attempt === 1 ? spanId : undefined, () =>
        tracer.startSpan('webhook', { kind: SpanKind.PRODUCER, attributes, root: true }, ROOT_CONTEXT),
      );
      return {
        end(status, error) {
          if (status !== null) span.setAttribute('http.response.status_code', status);
          if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
          span.end();
        },
      };
    },
    async stop() {
      const late = AbortSignal.timeout(STOP_MS);
      const gaveUp = new Promise((resolve) => late.addEventListener('abort', resolve, { once: true }));
      await Promise.race([provider.shutdown().catch(() => {}), gaveUp]);
    },
  };
}

function beginRequest(
  tracer: Tracer,
  serving: AsyncLocalStorage<Span>,
  { method, route, operation, variant, traceparent, isTrusted }: Incoming,
): RequestTrace {
  const { parent, links } = origin(traceparent, isTrusted);
  const attributes = {
    'http.request.method': method,
    'http.route': route,
    'scrip.operation': operation,
    'scrip.variant': variant,
  };
  const span = tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER, attributes, links }, parent);
  return {
    run: (serve) => serving.run(span, serve),
    end({ httpStatus, statusCode, merchantId, transactionId }) {
      span.setAttribute('http.response.status_code', httpStatus);
      if (statusCode !== undefined) span.setAttribute('scrip.status', statusCode);
      if (merchantId !== undefined) span.setAttribute('scrip.merchant', merchantId);
      if (transactionId !== undefined) {
        span.setAttribute('scrip.transaction', transactionId);
        span.addLink({ context: eventContext(transactionId) });
      }
      // A decline is not an error.
      if (httpStatus >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}

/**
 * Gives each request a span for the statement in its own trace, with the number of requests that shared it.
 */
function beginStatements(tracer: Tracer, waited: readonly Waited[]): StatementTrace {
  const now = performance.now();
  const attributes = { 'db.system.name': 'postgresql', 'scrip.rows': waited.length };
  const statements = waited.flatMap(({ span, addedAt }) => {
    if (!span?.isRecording()) return [];
    const within = trace.setSpan(ROOT_CONTEXT, span);
    const startTime = performance.timeOrigin + addedAt;
    tracer.startSpan('batcher', { startTime, attributes: { 'scrip.rows': waited.length } }, within).end();
    const at = { startTime: performance.timeOrigin + now, kind: SpanKind.CLIENT, attributes };
    return [tracer.startSpan('statement', at, within)];
  });
  return {
    end(error) {
      for (const span of statements) {
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: codeOf(error) });
        span.end();
      }
    },
  };
}

/** Continues a trace only if one of our proxies sent it. The trace of a client is linked instead. */
function origin(header: string | undefined, isTrusted: boolean): { parent: Context; links: Link[] } {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return { parent: ROOT_CONTEXT, links: [] };
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16) & 1, isRemote: true };
  return isTrusted
    ? { parent: trace.setSpanContext(ROOT_CONTEXT, context), links: [] }
    : { parent: ROOT_CONTEXT, links: [{ context }] };
}

function eventContext(eventId: string) {
  const traceId = hexOf(eventId);
  return { traceId, spanId: traceId.slice(-SPAN_DIGITS), traceFlags: 1, isRemote: true };
}

/** The message of a database error can quote values. */
const codeOf = (error: unknown) => (error as { code?: string }).code ?? (error as Error).name;

/** Logs the first failure to export traces, and the first success after it. */
function reporting(exporter: SpanExporter, log: Logger): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined;
        if (failed && !isFailing)
          log.warn({ part: 'traces', error: result.error?.message }, 'traces cannot be exported');
        if (!failed && isFailing) log.info({ part: 'traces' }, 'traces are exported again');
        isFailing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
