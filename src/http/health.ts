import type { FastifyInstance } from 'fastify';
import type { Service } from '../context.ts';
import { refusalText } from './envelope.ts';
import { ask } from './health.queries.ts';

const ALIVE = refusalText('00', 'Success');
const NOT_READY = refusalText('91', 'Service unavailable');

/**
 * /healthz answers 200 while the process lives; /readyz only while it can serve: the database answers, and the server
 * is not closing. Neither tells more: both are open to anyone.
 */
export function serveHealth(app: FastifyInstance, service: Service): void {
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  app.get('/healthz', (request, reply) => {
    request.trace.route = '/healthz';
    request.trace.statusCode = '00';
    reply.type('application/json; charset=utf-8').send(ALIVE);
  });
  app.get('/readyz', async (request, reply) => {
    request.trace.route = '/readyz';
    const ready = !closing && (await answers(service));
    request.trace.statusCode = ready ? '00' : '91';
    if (!ready) reply.code(503).header('retry-after', '1');
    return reply.type('application/json; charset=utf-8').send(ready ? ALIVE : NOT_READY);
  });
}

async function answers({ db }: Service): Promise<boolean> {
  return db.query(ask()).then(
    () => true,
    () => false,
  );
}
