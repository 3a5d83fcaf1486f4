import type { RequestListener } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Service } from '../context.ts';
import { accessLog } from '../log.ts';
import { REFUSALS } from '../refusal.ts';
import type { Admission } from './admission.ts';
import { Burst } from './burst.ts';
import { refusalText } from './envelope.ts';
import { standInLine } from './pipeline.ts';
import { RefusalPace } from './refusal-pace.ts';

const BODY = refusalText('91', REFUSALS['91']);
const HEADERS = [
  ...['content-type', 'application/json; charset=utf-8', 'content-length', String(Buffer.byteLength(BODY))],
  ...['cache-control', 'no-store', 'retry-after', '1', 'x-request-id'],
];

type Refusing = {
  readonly admission: Admission;
  /** Of the paths that are calls; health and documents are none. */
  readonly prefixes: readonly string[];
  readonly nextId: () => string;
  readonly isClosing: () => boolean;
};

/**
 * Refuses calls for which there is no room, `91`, before the framework meets them: no route, no credentials, no body. What refusing
 * takes is taken from those who were let in, and under a flood nearly every call is refused. So is whatever stands last in a line that is
 * too long (pipeline.ts).
 */
export function refuseEarly(
  app: FastifyInstance,
  service: Service,
  { admission, prefixes, nextId, isClosing }: Refusing,
): void {
  const log = accessLog(service.log);
  const starts = prefixes.map((prefix) => `${prefix}/`);
  const [serve] = app.server.listeners('request') as RequestListener[];
  if (!serve) throw new Error('the framework does not listen for requests');
  const burst = new Burst(admission, serve);
  const pace = new RefusalPace(admission);
  app.server.off('request', serve);
  app.server.on('request', (request, response) => {
    const { url = '', method = '' } = request;
    const closing = isClosing();
    const place = standInLine(request, response, closing);
    if (place === 'behind') return;
    const isCall = !closing && starts.some((start) => url.startsWith(start));
    const goesIn = !isCall || (burst.isEmpty && admission.room > 0) || admission.isOwed(request.headers.authorization);
    if (place === 'served' && goesIn) {
      serve(request, response);
      return;
    }
    const startedAt = performance.now();
    const refuse = () => {
      const requestId = nextId();
      const aborted = response.destroyed;
      response.shouldKeepAlive &&= !isClosing() && place === 'served';
      response.writeHead(503, [...HEADERS, requestId]).end(BODY);
      const durationMs = Math.round(performance.now() - startedAt);
      const who = { route: undefined, merchantId: undefined, keyId: undefined, transactionId: undefined };
      log({ requestId, method, httpStatus: 503, statusCode: '91', durationMs, aborted, ...who });
    };
    // At once: it goes out behind all the others of its connection in any case.
    if (place === 'last') return refuse();
    if (burst.add({ request, response, refuse })) return;
    for (const late of burst.end()) pace.add(late.refuse);
    pace.add(refuse);
  });
}
