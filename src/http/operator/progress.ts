import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Service } from '../../context.ts';
import { jobs } from '../../operator/job-operations.ts';
import type { Job } from '../../operator/job-schema.ts';
import { perform } from '../../operator/perform.ts';
import type { Principal } from '../../operator/principal.ts';
import { sendProblem } from './problems.ts';

/** The progress of a job as events. */

const POLL_MS = 500;
/** A proxy that sees nothing for a minute closes the connection. */
const HEARTBEAT_MS = 15_000;
const END_STATES: readonly string[] = ['COMPLETED', 'CANCELED', 'FAILED'];

type Identify = (request: FastifyRequest) => Promise<Principal>;

/** Serves `/jobs/:id/events` below a prefix. */
export function serveProgress(
  app: FastifyInstance,
  service: Service,
  prefix: string,
  identify: Identify,
): void {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  const url = `${prefix}/jobs/:id/events`;
  app.route({
    method: 'GET',
    url,
    onRequest(request, _reply, done) {
      request.trace.route = url;
      done();
    },
    async handler(request, reply) {
      const principal = await identify(request);
      const input = { id: (request.params as { id: string }).id };
      const next = async () =>
        (await perform(jobs.show as never, { service, principal, input })).output as Job;
      const first = await next();
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const signal = AbortSignal.any([closing.signal, gone.signal]);
      return reply.type('text/event-stream').send(Readable.from(events(first, next, signal)));
    },
    errorHandler: (error, request, reply) => sendProblem(service, request, reply, error),
  });
}

/**
 * An event for each change of a job, until it has ended. Rights are looked up again for each: one that is
 * taken away ends it.
 */
async function* events(first: Job, next: () => Promise<Job>, signal: AbortSignal): AsyncGenerator<string> {
  let sent = '';
  let quietMs = 0;
  for (let job = first; ; job = await next()) {
    const data = JSON.stringify(job);
    if (data !== sent || quietMs >= HEARTBEAT_MS) {
      yield data === sent ? ': still running\n\n' : `event: progress\ndata: ${data}\n\n`;
      quietMs = 0;
    }
    sent = data;
    if (END_STATES.includes(job.state)) return;
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    quietMs += POLL_MS;
  }
}
