import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../refusal.ts';

/** So many requests are worked on at the same time in any case: more than a full statement, and no more than are answered well below 0.1 s. */
const LEAST_UNDER_WAY = 192;
/** Of more, only as many as were answered lately in this time: what would wait longer is better refused at once. */
const MOST_WAIT_MS = 20;
/**
 * But a burst is no load: so many that come on top, once few were inside for a while, are let in though they wait, and a thousand copies of
 * one request at once all get its answer.
 */
const BURST = 832;
const FEW = 64;
const WHILE_MS = 250;
/** No more than may wait for a statement in any case (src/db/gather.ts): what is let in is not refused later. */
const MOST_UNDER_WAY = LEAST_UNDER_WAY + BURST;
/** How long is counted for what was answered lately. */
const COUNT_MS = 250;

/** Counts the requests that were let in until their answer begins. A download that streams for an hour holds no place. */
export class Admission {
  #underWay = 0;
  readonly #inside = new WeakSet<FastifyRequest>();
  /** What is left of the burst. */
  #burst = BURST;
  #lastBusyAt = Number.NEGATIVE_INFINITY;
  #answered = 0;
  #countedSince = performance.now();
  #answeredPerMs = 0;

  constructor(app: FastifyInstance) {
    app.addHook('onSend', (request, _reply, payload, done) => {
      this.#leave(request);
      done(null, payload);
    });
  }

  /** Whether one more would only be refused. */
  get isFull(): boolean {
    if (this.#underWay < LEAST_UNDER_WAY) return false;
    if (this.#underWay >= MOST_UNDER_WAY) return true;
    return this.#burst === 0 && this.#underWay >= this.#perMs() * MOST_WAIT_MS;
  }

  /**
   * Lets a request in whose body is there; one that trickles in holds no place either.
   * @throws Refusal `91` where too many are inside
   */
  enter(request: FastifyRequest, reply: FastifyReply): void {
    if (this.isFull) throw new Refusal('91', { retryAfterSeconds: 1 });
    if (this.#underWay >= LEAST_UNDER_WAY && this.#burst > 0) this.#burst--;
    this.#notice(performance.now());
    this.#underWay++;
    this.#inside.add(request);
    // A client that goes away is sent nothing.
    reply.raw.on('close', () => this.#leave(request));
  }

  #leave(request: FastifyRequest): void {
    if (!this.#inside.delete(request)) return;
    this.#underWay--;
    this.#answered++;
  }

  /** Few for a while: the next burst may come. */
  #notice(now: number): void {
    if (this.#underWay > FEW) this.#lastBusyAt = now;
    else if (now - this.#lastBusyAt > WHILE_MS) this.#burst = BURST;
  }

  /** How many were answered a millisecond, lately. */
  #perMs(): number {
    const now = performance.now();
    const sinceMs = now - this.#countedSince;
    if (sinceMs >= COUNT_MS) {
      this.#answeredPerMs = this.#answered / sinceMs;
      this.#answered = 0;
      this.#countedSince = now;
    }
    return this.#answeredPerMs;
  }
}
