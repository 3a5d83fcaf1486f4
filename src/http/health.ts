import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Service } from '../context.ts';
import { PING } from '../db/sql.ts';
import { JSON_TYPE } from './answer.ts';
import { bodyText } from './envelope.ts';

const ALIVE = bodyText('00', 'Success');
const NOT_READY = bodyText('91', 'Service unavailable');

/**
 * A till call that has to wait longer for the database is not served well. Load balancers have limits of
 * their own.
 */
const READY_TIMEOUT_MS = 1_000;

/**
 * Serves /healthz, which answers 200 while the process lives, and /readyz, which does so only while a call of
 * a till could be served: the database answers on the pool of the till calls, and the server is not closing.
 * Both are open to anyone, and show nothing else.
 */
export function serveHealth(app: FastifyInstance, service: Service, isDraining: () => boolean): void {
  const answer = (reply: FastifyReply, route: string, isReady: boolean) => {
    Object.assign(reply.request.trace, { route, statusCode: isReady ? '00' : '91' });
    if (!isReady) reply.code(503).header('retry-after', '1');
    return reply.type(JSON_TYPE).send(isReady ? ALIVE : NOT_READY);
  };
  app.get('/healthz', (_request, reply) => answer(reply, '/healthz', true));
  app.get('/readyz', async (_request, reply) =>
    answer(reply, '/readyz', !isDraining() && (await canServeTills(service))),
  );
}

async function canServeTills({ db }: Service): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, READY_TIMEOUT_MS, false);
  const asked = db.hot(PING, []).then(
    () => true,
    () => false,
  );
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}
