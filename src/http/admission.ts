import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Merchant } from '../context.ts';
import { Refusal } from '../refusal.ts';

/** So many requests are worked on at the same time in any case: more than a full statement, and no more than are answered well below 0.1 s. */
const LEAST_UNDER_WAY = 192;
/** Of more, only as many as were answered lately in this time: what would wait longer is better refused at once. */
const MOST_WAIT_MS = 20;
/**
 * But so few connections bound themselves: each has one request at a time, and all of them are answered in 40 ms. Nobody is refused
 * before there are more.
 */
const FEW_CONNECTIONS = 384;
/**
 * And a burst is no load: so many that come on top, once few were inside for a while, may wait for room, and a thousand copies of one
 * request at once all get its answer.
 */
const BURST = 832;
const FEW = 64;
const WHILE_MS = 250;
/** A bound on memory, whoever asks. No more than may wait for a statement in any case (src/db/gather.ts): what is let in is not refused later. */
const MOST_UNDER_WAY = 1_024;
/** How long is counted for what was answered lately. */
const COUNT_MS = 250;
/** Merchants that are remembered, and spellings of the credentials of each: nobody has so many keys in use. */
const MOST_CALLERS = 10_000;
const MOST_NAMES = 16;

/** Who has how many inside. */
class Caller {
  inside = 0;
  /** Hashes of the Authorization headers that it came with, the oldest first. */
  readonly names: string[] = [];
}

declare module 'fastify' {
  interface FastifyRequest {
    /** For whom it counts, as long as it is inside. */
    caller: Caller | undefined;
  }
}

/**
 * Counts the requests that were let in until their answer begins. A download that streams for an hour holds no place.
 *
 * Once the house is full, who has less than a fair share of it inside is still let in: one merchant who floods keeps no other out. At
 * the door nobody has been authenticated yet, so callers are known there by their Authorization header: whoever got in with the same one
 * before is that merchant. All that are not known so, invented ones included, count as one caller until they are authenticated.
 */
export class Admission {
  #underWay = 0;
  #connections = 0;
  readonly #unknown = new Caller();
  /** By merchant id; by what its keys were found as last; and by the hash of a header: no list of secrets lies here. */
  readonly #callers = new Map<number, Caller>();
  readonly #merchants = new WeakMap<Merchant, Caller>();
  readonly #names = new Map<string, Caller>();
  /** What was asked last at a full house. */
  #lastHeader: string | undefined;
  #lastCaller = this.#unknown;
  /** Callers who have something inside. */
  #present = 0;
  /** What is left of the burst. */
  #burst = BURST;
  #lastBusyAt = Number.NEGATIVE_INFINITY;
  #answered = 0;
  #countedSince = performance.now();
  #answeredPerMs = 0;

  /** Called whenever a place is free again. */
  onLeave: (() => void) | undefined;

  constructor(app: FastifyInstance) {
    app.decorateRequest('caller');
    app.addHook('onSend', (request, _reply, payload, done) => {
      this.#leave(request);
      done(null, payload);
    });
    app.server.on('connection', (socket) => {
      this.#connections++;
      socket.on('close', () => this.#connections--);
    });
  }

  /** How many of a burst may still wait for room. */
  get burst(): number {
    return this.#burst;
  }

  /** Counts one that waited; or all that could, where more came than a burst. */
  takeBurst(count = this.#burst): void {
    this.#burst = Math.max(0, this.#burst - count);
  }

  /** How many were answered a millisecond, lately. */
  get perMs(): number {
    const now = performance.now();
    const sinceMs = now - this.#countedSince;
    if (sinceMs >= COUNT_MS) {
      this.#answeredPerMs = this.#answered / sinceMs;
      this.#answered = 0;
      this.#countedSince = now;
    }
    return this.#answeredPerMs;
  }

  /** How many more are let in, whoever asks. */
  get room(): number {
    if (this.#underWay < LEAST_UNDER_WAY) return LEAST_UNDER_WAY - this.#underWay;
    return Math.max(0, this.#size() - this.#underWay);
  }

  /** Whether a caller, known by this header, has less than a fair share of the full house. */
  isOwed(authorization: string | undefined): boolean {
    if (this.#underWay >= MOST_UNDER_WAY) return false;
    const { inside } = this.#callerOf(authorization);
    const callers = inside > 0 ? this.#present : this.#present + 1;
    return inside < this.#size() / callers;
  }

  /**
   * Lets a request in whose body is there; one that trickles in holds no place either.
   * @throws Refusal `91` where too many are inside
   */
  enter(request: FastifyRequest, reply: FastifyReply): void {
    if (this.room === 0 && !this.isOwed(request.headers.authorization)) {
      throw new Refusal('91', { retryAfterSeconds: 1 });
    }
    this.#notice(performance.now());
    this.#underWay++;
    this.#count(request, this.#unknown);
    // A client that goes away is sent nothing.
    reply.raw.on('close', () => this.#leave(request));
  }

  /** Counts a request for whose header it has, as long as it waits for its authentication. */
  guess(request: FastifyRequest): void {
    this.#move(request, this.#callerOf(request.headers.authorization));
  }

  /** Counts a request for its merchant, once it has been authenticated. */
  recognize(request: FastifyRequest, merchant: Merchant): void {
    const caller = this.#merchants.get(merchant) ?? this.#remember(merchant, request.headers.authorization);
    this.#move(request, caller);
  }

  /** Forgets that a header was a caller's: it has been refused. */
  forget({ caller, headers }: FastifyRequest): void {
    if (!caller || caller === this.#unknown) return;
    const name = nameOf(headers.authorization);
    this.#names.delete(name);
    const at = caller.names.indexOf(name);
    if (at >= 0) caller.names.splice(at, 1);
    this.#lastHeader = undefined;
  }

  /** How many are inside of a full house. */
  #size(): number {
    const least = this.#connections <= FEW_CONNECTIONS ? FEW_CONNECTIONS : LEAST_UNDER_WAY;
    return Math.min(MOST_UNDER_WAY, Math.max(least, this.perMs * MOST_WAIT_MS));
  }

  #callerOf(authorization = ''): Caller {
    // Under a flood it is the same header again and again, and hashing it costs more than to see that.
    if (authorization !== this.#lastHeader) {
      this.#lastCaller = this.#names.get(nameOf(authorization)) ?? this.#unknown;
      this.#lastHeader = authorization;
    }
    return this.#lastCaller;
  }

  /** The caller that a merchant is. Called once each time that one of its keys was looked up, so it may take a moment. */
  #remember(merchant: Merchant, authorization: string | undefined): Caller {
    let caller = this.#callers.get(merchant.id);
    if (!caller) {
      caller = new Caller();
      if (this.#callers.size >= MOST_CALLERS) this.#forgetOldest();
      this.#callers.set(merchant.id, caller);
    }
    this.#merchants.set(merchant, caller);
    this.#lastHeader = undefined;
    const name = nameOf(authorization);
    if (this.#names.get(name) !== caller) {
      // Credentials can be spelled in many ways: they take room from none but their own merchant.
      if (caller.names.length >= MOST_NAMES) this.#names.delete(caller.names.shift() as string);
      caller.names.push(name);
      this.#names.set(name, caller);
    }
    return caller;
  }

  #forgetOldest(): void {
    const [id, caller] = this.#callers.entries().next().value as [number, Caller];
    this.#callers.delete(id);
    for (const name of caller.names) this.#names.delete(name);
  }

  #count(request: FastifyRequest, caller: Caller): void {
    request.caller = caller;
    if (caller.inside++ === 0) this.#present++;
  }

  #move(request: FastifyRequest, caller: Caller): void {
    if (!request.caller || request.caller === caller) return;
    this.#discount(request.caller);
    this.#count(request, caller);
  }

  #discount(caller: Caller): void {
    if (--caller.inside === 0) this.#present--;
  }

  #leave(request: FastifyRequest): void {
    const { caller } = request;
    if (!caller) return;
    request.caller = undefined;
    this.#discount(caller);
    this.#underWay--;
    this.#answered++;
    this.onLeave?.();
  }

  /** Few for a while: the next burst may come. */
  #notice(now: number): void {
    if (this.#underWay > FEW) this.#lastBusyAt = now;
    else if (now - this.#lastBusyAt > WHILE_MS) this.#burst = BURST;
  }
}

/** What a header is known by. */
function nameOf(authorization = ''): string {
  return hash('sha256', authorization, 'binary');
}
