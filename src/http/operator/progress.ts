import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { type Job, showJob } from '../../jobs/jobs.ts';
import { perform } from '../../operations/perform.ts';
import type { Principal } from '../../principal.ts';
import { Problem } from '../../problem.ts';
import { Shares } from '../overload.ts';
import { type Desk, PREFIXES } from './desk.ts';
import { identifyAgain, identifyPrincipal } from './identify.ts';

/** The progress of a job as server-sent events. */

const POLL_MS = 500;
/** The interval of heartbeats: a proxy closes a connection after a minute without data. */
const HEARTBEAT_MS = 15_000;
/** The most streams at a time, shared by people and tokens: each stream asks the database twice a second. */
const STREAMS_MAX = 20;
const END_STATES: readonly string[] = ['COMPLETED', 'CANCELED', 'FAILED'];

/** Serves `/jobs/:id/events` of the operator. */
export function serveProgress(app: FastifyInstance, desk: Desk): void {
  const { service } = desk;
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  const streams = new Shares<string>(STREAMS_MAX);
  app.get(`${PREFIXES.operator}/jobs/:id/events`, async (request, reply) => {
    const input = { id: (request.params as { id: string }).id };
    const show = async (principal: Principal) => {
      if (principal.merchantId !== null) throw new Problem('forbidden');
      return (await perform(showJob as never, { service, principal, input })).output as Job;
    };
    const principal = await identifyPrincipal(desk, request, reply, 'operator');
    const first = await show(principal);
    const next = async () => show(await identifyAgain(desk, request, 'operator'));
    const follower = `${principal.kind} ${principal.id}`;
    if (!streams.hasPlace(follower))
      throw new Problem(
        'too-many-requests',
        `${STREAMS_MAX} pages follow jobs at the moment: close one, or ask for the job instead`,
      );
    streams.take(follower);
    const gone = new AbortController();
    reply.raw.once('close', () => {
      streams.leave(follower);
      gone.abort();
    });
    const signal = AbortSignal.any([closing.signal, gone.signal]);
    return reply.type('text/event-stream').send(Readable.from(events(first, next, signal)));
  });
}

/**
 * Yields an event for each change of a job, until it has ended. The rights are checked again for each event;
 * if they were removed, the stream ends.
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
