import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Service } from '../../context.ts';
import type { JobResult } from '../../operator/job-operations.ts';
import { jobs } from '../../operator/job-operations.ts';
import type { Job } from '../../operator/job-schema.ts';
import type { AnyOperation } from '../../operator/operations.ts';
import { perform } from '../../operator/perform.ts';
import type { Principal } from '../../operator/principal.ts';
import { sendProblem } from './problems.ts';

/** The progress of a job as events, and its rows as a file: what is no single JSON document. */

const POLL_MS = 500;
/** A proxy that sees nothing for a minute closes the connection. */
const HEARTBEAT_MS = 15_000;
const PAGE = 200;
const END_STATES: readonly string[] = ['COMPLETED', 'CANCELED', 'FAILED'];

type Identify = (request: FastifyRequest) => Promise<Principal>;
type Page = { readonly items: readonly JobResult[]; readonly nextCursor: string | null };

/** Serves `/jobs/:id/events` and `/jobs/:id/rows.csv` below a prefix. */
export function serveProgress(
  app: FastifyInstance,
  service: Service,
  prefix: string,
  identify: Identify,
): void {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  const ask = async (
    operation: object,
    request: FastifyRequest,
    principal: Principal,
    input: object = {},
  ) => {
    const { id } = request.params as { id: string };
    return (await perform(operation as AnyOperation, { service, principal, input: { ...input, id } })).output;
  };
  const route = (
    url: string,
    answer: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
  ) =>
    app.route({
      method: 'GET',
      url,
      onRequest(request, _reply, done) {
        request.trace.route = url;
        done();
      },
      handler: answer,
      errorHandler: (error, request, reply) => sendProblem(service, request, reply, error),
    });

  route(`${prefix}/jobs/:id/events`, async (request, reply) => {
    const principal = await identify(request);
    const first = (await ask(jobs.show, request, principal)) as Job;
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([closing.signal, gone.signal]);
    const next = () => ask(jobs.show, request, principal) as Promise<Job>;
    return reply.type('text/event-stream').send(Readable.from(events(first, next, signal)));
  });

  route(`${prefix}/jobs/:id/rows.csv`, async (request, reply) => {
    const principal = await identify(request);
    const page = (cursor?: string) =>
      ask(jobs.rows, request, principal, { limit: PAGE, ...(cursor && { cursor }) }) as Promise<Page>;
    const first = await page();
    const { id } = request.params as { id: string };
    return reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', `attachment; filename="job-${id}.csv"`)
      .send(Readable.from(lines(first, page)));
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

async function* lines(first: Page, next: (cursor: string) => Promise<Page>): AsyncGenerator<string> {
  yield 'row,serialNumber,outcome,message\r\n';
  for (let page = first; ; page = await next(page.nextCursor)) {
    for (const { number, subject, outcome, message } of page.items)
      yield `${[number, subject, outcome ?? '', quoted(message ?? '')].join(',')}\r\n`;
    if (page.nextCursor === null) return;
  }
}

/** A cell that a spreadsheet takes as text: it never begins with what one takes for a formula. */
function quoted(text: string): string {
  const safe = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
