import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Service } from '../context.ts';
import { JSON_TYPE } from './answer.ts';
import { bodyText } from './endpoint.ts';

const ALIVE = bodyText('00', 'Success');
const NOT_READY = bodyText('91', 'Service unavailable');

/**
 * Serves /healthz and /readyz. /healthz answers 200 while the process is alive. /readyz answers 200 only
 * while calls of tills can be served: the database answers on their pool, takes writes, and accepts bookings
 * by the clock of this process, and the server is not closing. Both are open to anyone, and reveal nothing
 * else.
 */
export function serveHealth(app: FastifyInstance, service: Service, isDraining: () => boolean): void {
  const answer = (reply: FastifyReply, isReady: boolean) => {
    reply.request.trace.statusCode = isReady ? '00' : '91';
    if (!isReady) reply.code(503).header('retry-after', '1');
    return reply.type(JSON_TYPE).send(isReady ? ALIVE : NOT_READY);
  };
  app.get('/healthz', (_request, reply) => answer(reply, true));
  app.get('/readyz', async (_request, reply) =>
    answer(reply, !isDraining() && (await service.readiness.check(service)) === undefined),
  );
}

/**
 * How long a server that closes still accepts connections. A load balancer sends new ones until its next
 * health check. After `leastMs` the server stops listening once no connection is left, and at `mostMs` in any
 * case.
 */
export type Drain = { readonly leastMs: number; readonly mostMs: number };
/** Nobody has to notice the stop. */
export const NO_DRAIN: Drain = { leastMs: 0, mostMs: 0 };

/** How long accepted requests may take after the server begins to close. */
const CLOSE_TIMEOUT_MS = 30_000;
/** How often the server checks for remaining connections. */
const LOOK_MS = 20;
/** Requests that were sent before the server stopped listening arrive within this time. */
const HOLD_MS = 50;

/**
 * Makes a server close gracefully: accepted requests are answered, and each connection ends after an answer.
 *
 * The server first drains. It still accepts connections, so that load balancers and clients with idle
 * connections notice, and answers each connection once more, with `Connection: close`. A client that does not
 * wait for answers may have sent more requests after that one. They are not accepted, since their answers
 * could not be sent.
 *
 * Answers are held back while the server stops listening. A client that waits for an answer opens no new
 * connection, and the system would reset one that is opened at that moment. Connections without any data,
 * which browsers open in advance, are then closed.
 *
 * Call this before any other hook is added: requests that are not accepted must not reach other hooks.
 * @returns whether the server has begun to drain
 */
export function closeGracefully(app: FastifyInstance, drain: () => Drain): () => boolean {
  let draining = false;
  let held: Promise<void> | undefined;
  let deadline: NodeJS.Timeout | undefined;
  const newest = new WeakMap<Socket, IncomingMessage>();
  const ended = new WeakSet<Socket>();
  /** Connections without a request so far. Node considers them busy. */
  const unused = new Set<Socket>();
  app.server.on('connection', (socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  app.addHook('preClose', async () => {
    draining = true;
    deadline = setTimeout(() => app.server.closeAllConnections(), CLOSE_TIMEOUT_MS);
    const { leastMs, mostMs } = drain();
    await sleep(leastMs);
    if (!(await hasConnections(app, mostMs - leastMs))) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    await sleep(HOLD_MS);
    // The server stops listening right after this hook.
    setImmediate(() => {
      resolve();
      for (const socket of unused) if (socket.bytesRead === 0) socket.destroy();
    });
  });
  app.addHook('onClose', (_app, done) => {
    clearTimeout(deadline);
    done();
  });
  app.addHook('onRequest', ({ raw }, reply, done) => {
    unused.delete(raw.socket);
    if (draining) {
      if (ended.has(raw.socket)) {
        reply.hijack();
        return;
      }
      ended.add(raw.socket);
    }
    newest.set(raw.socket, raw);
    done();
  });
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (draining && newest.get(raw.socket) === raw) {
      ended.add(raw.socket);
      reply.header('connection', 'close');
    }
    if (held) void held.then(() => done(null, payload));
    else done(null, payload);
  });
  return () => draining;
}

/** Waits until no connection is left, at most `withinMs`. Returns whether one is left. */
async function hasConnections({ server }: FastifyInstance, withinMs: number): Promise<boolean> {
  const count = promisify(server.getConnections.bind(server));
  const until = performance.now() + withinMs;
  for (;;) {
    if ((await count()) === 0) return false;
    if (performance.now() >= until) return true;
    await sleep(LOOK_MS);
  }
}
