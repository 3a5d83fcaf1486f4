import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../refusal.ts';

/**
 * Requests that a process works on at the same time: those that may wait for a statement (src/db/gather.ts) and those under
 * way. Beyond them a request would only be refused later, behind credentials, parser and HMAC; and it is the time that
 * refusing takes which keeps the accepted ones waiting.
 */
const MOST_UNDER_WAY = 1_536;

/** Counts the requests that were let in until their answer begins. A download that streams for an hour holds no place. */
export class Admission {
  #underWay = 0;
  readonly #inside = new WeakSet<FastifyRequest>();

  constructor(app: FastifyInstance) {
    app.addHook('onSend', (request, _reply, payload, done) => {
      this.#leave(request);
      done(null, payload);
    });
  }

  /**
   * Lets a request in whose body is there; one that trickles in holds no place either.
   * @throws Refusal `91` where too many are inside
   */
  enter(request: FastifyRequest, reply: FastifyReply): void {
    if (this.#underWay >= MOST_UNDER_WAY) throw new Refusal('91', { retryAfterSeconds: 1 });
    this.#underWay++;
    this.#inside.add(request);
    // A client that goes away is sent nothing.
    reply.raw.on('close', () => this.#leave(request));
  }

  #leave(request: FastifyRequest): void {
    if (this.#inside.delete(request)) this.#underWay--;
  }
}
