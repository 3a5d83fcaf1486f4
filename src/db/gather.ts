import { Refusal } from '../refusal.ts';
import type { Database } from './pool.ts';
import { retrying } from './retry.ts';

/**
 * One operation of the hot path. Calls that wait at one moment go to the database as one statement.
 */
export type Operation<Request, Answer> = {
  /** What a call must have for itself within a statement: its voucher, its reference. Two that share one never share a statement. */
  readonly keysOf: (request: Request) => readonly string[];
  /** Sends one statement for all of them. Answers stand in the order of the requests; `again` sends a request once more. */
  readonly run: (db: Database, requests: readonly Request[]) => Promise<(Answer | typeof AGAIN)[]>;
};

/** A call lost a race that only a fresh snapshot can settle: it goes into the next statement. */
export const AGAIN: unique symbol = Symbol('again');

/** More rows save little a row and make the first of them wait for the last: past a hundred the gain is below 5 %. */
const MOST_ROWS = 128;
/** One statement is worked on by the database while the next is written: a third would only split them smaller. */
const MOST_IN_FLIGHT = 2;
/** At 10,000 a second a call behind this many waits 0.4 s; more of them are told at once to come back. */
const MOST_WAITING = 4_096;
/** Every turn settles at least one call of those that met on a voucher; sixty-four in a row means something is broken. */
const MOST_TURNS = 64;

type Call<Request, Answer> = {
  readonly request: Request;
  readonly keys: readonly string[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  turns: number;
};

/**
 * Makes a function that gathers calls to one operation, one queue for each database.
 *
 * An idle service sends a call in the same turn of the event loop; there is no timer. Under load, calls gather while
 * the statements before them are under way. Refuses `91` at once when too many wait.
 */
export function gather<Request, Answer>(operation: Operation<Request, Answer>) {
  const queues = new WeakMap<Database, Queue<Request, Answer>>();
  return (db: Database, request: Request): Promise<Answer> => {
    let queue = queues.get(db);
    if (!queue) {
      queue = new Queue(db, operation);
      queues.set(db, queue);
    }
    return queue.add(request);
  };
}

class Queue<Request, Answer> {
  readonly #db: Database;
  readonly #operation: Operation<Request, Answer>;
  #waiting: Call<Request, Answer>[] = [];
  readonly #held = new Set<string>();
  #inFlight = 0;
  #scheduled = false;

  constructor(db: Database, operation: Operation<Request, Answer>) {
    this.#db = db;
    this.#operation = operation;
  }

  add(request: Request): Promise<Answer> {
    if (this.#waiting.length >= MOST_WAITING) return Promise.reject(new Refusal('91', { retryAfterSeconds: 1 }));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, keys: this.#operation.keysOf(request), resolve, reject, turns: 0 });
      this.#schedule();
    });
  }

  /** After the input that has arrived is read, so that what came in together is sent together. */
  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= MOST_IN_FLIGHT) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#inFlight >= MOST_IN_FLIGHT) return;
    const calls = this.#take();
    if (calls.length === 0) return;
    this.#inFlight++;
    void this.#settle(calls).finally(() => {
      this.#inFlight--;
      for (const call of calls) for (const key of call.keys) this.#held.delete(key);
      if (this.#waiting.length > 0) this.#schedule();
    });
    if (this.#waiting.length > 0) this.#schedule();
  }

  /** The calls that can go now, in the order of their coming: none whose voucher or reference is under way. */
  #take(): Call<Request, Answer>[] {
    const taken: Call<Request, Answer>[] = [];
    const left: Call<Request, Answer>[] = [];
    // A call that must wait holds its keys too, so that those behind it for the same voucher do not overtake it.
    const passed = new Set<string>();
    for (let index = 0; index < this.#waiting.length; index++) {
      const call = this.#waiting[index] as Call<Request, Answer>;
      if (taken.length === MOST_ROWS) {
        for (; index < this.#waiting.length; index++) left.push(this.#waiting[index] as Call<Request, Answer>);
        break;
      }
      if (call.keys.some((key) => this.#held.has(key) || passed.has(key))) {
        for (const key of call.keys) passed.add(key);
        left.push(call);
      } else {
        for (const key of call.keys) this.#held.add(key);
        taken.push(call);
      }
    }
    this.#waiting = left;
    return taken;
  }

  async #settle(calls: readonly Call<Request, Answer>[]): Promise<void> {
    const requests = calls.map((call) => call.request);
    try {
      const answers = await retrying(() => this.#operation.run(this.#db, requests));
      const again: Call<Request, Answer>[] = [];
      calls.forEach((call, index) => {
        const answer = answers[index];
        if (answer !== AGAIN) call.resolve(answer as Answer);
        else if (++call.turns < MOST_TURNS) again.push(call);
        else call.reject(new Refusal('91', { retryAfterSeconds: 1 }));
      });
      if (again.length > 0) this.#waiting.unshift(...again);
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
  }
}
