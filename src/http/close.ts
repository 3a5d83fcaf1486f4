import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { endLine } from './pipeline.ts';

/**
 * How a server closes: what it accepted is answered, and nobody meets a connection that is torn down.
 *
 * A connection that a client opens in the moment in which the server stops listening is reset by the system before the server
 * has seen it, and so is what comes over one that was idle and is closed in that moment. Clients that wait for an answer
 * do neither; so answers are held back until nobody comes any more, the server stops listening, and then they go out, each as
 * the last one of its connection. Connections that were idle are served for a little longer before they are closed.
 */

/** What is accepted has this long to end once the server closes. */
const CLOSE_TIMEOUT_MS = 30_000;
/** Nobody has come for so long: nobody comes in the moment after it either, unless by chance. */
const QUIET_MS = 10;
/** Answers are held back no longer than this, however many come. */
const MOST_HELD_MS = 200;

/**
 * Has to come before whatever else hears that the server closes: the framework makes each request from then on the last one of its
 * connection, and what is accepted behind it would never be answered.
 * @param idleMs how long connections that are idle are still served; with 0 they are closed at once, and nothing is held
 * @returns whether the server closes
 */
export function closeGently(app: FastifyInstance, idleMs: number): () => boolean {
  let closing = false;
  let held: Promise<void> | undefined;
  let deadline: NodeJS.Timeout | undefined;
  let idle: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    closing = true;
    deadline = setTimeout(() => app.server.closeAllConnections(), CLOSE_TIMEOUT_MS);
    if (idleMs === 0) return;
    const released = Promise.withResolvers<void>();
    held = released.promise;
    await quiet(app);
    idle = keepIdle(app, idleMs);
    // The server stops listening right after this hook.
    setTimeout(() => {
      held = undefined;
      released.resolve();
    }, 1);
  });
  app.addHook('onClose', (_app, done) => {
    clearTimeout(deadline);
    clearTimeout(idle);
    done();
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    if (closing && endLine(request.raw)) reply.header('connection', 'close');
    if (held) void held.then(() => done(null, payload));
    else done(null, payload);
  });
  return () => closing;
}

async function quiet({ server }: FastifyInstance): Promise<void> {
  const until = performance.now() + MOST_HELD_MS;
  let came = true;
  const onConnection = () => {
    came = true;
  };
  server.on('connection', onConnection);
  while (came && performance.now() < until) {
    came = false;
    await sleep(QUIET_MS);
  }
  server.off('connection', onConnection);
}

/** Node closes idle connections when a server stops listening: here that waits. */
function keepIdle({ server }: FastifyInstance, idleMs: number): NodeJS.Timeout {
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {};
  return setTimeout(() => {
    server.closeIdleConnections = closeIdle;
    closeIdle();
  }, idleMs);
}
