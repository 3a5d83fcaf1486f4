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
export function serveHealth(app: FastifyInstance, service: Service, isDraining: () => boolean): void {
  app.get('/healthz', (request, reply) => {
    request.trace.route = '/healthz';
    request.trace.statusCode = '00';
    reply.type('application/json; charset=utf-8').send(ALIVE);
  });
  app.get('/readyz', async (request, reply) => {
    request.trace.route = '/readyz';
    const ready = !isDraining() && (await answers(service));
    request.trace.statusCode = ready ? '00' : '91';
    if (!ready) reply.code(503).header('retry-after', '1');
    return reply.type('application/json; charset=utf-8').send(ready ? ALIVE : NOT_READY);
  });
}

/** A database that takes longer to say one is not one to serve with; whoever asks has a limit of its own. */
const ANSWER_MS = 1_000;

async function answers({ db }: Service): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ANSWER_MS, false);
  });
  const asked = db.query(ask()).then(
    () => true,
    () => false,
  );
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}
