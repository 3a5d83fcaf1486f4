import { Refusal } from '../refusal.ts';
import { isAway } from './errors.ts';
import type { Database } from './pool.ts';
import { retrying } from './retry.ts';

/**
 * One operation of the hot path. Calls that wait at one moment go to the database as one statement.
 */
export type Operation<Request, Answer> = {
  /** What a call must have for itself within a statement: its voucher, its reference. Two that share one never share a statement. */
  readonly keysOf: (request: Request) => readonly string[];
  /** Whose call it is: callers take turns, so that one who floods keeps no other waiting. Left out: all are one's. */
  readonly callerOf?: (request: Request) => number;
  /** Sends one statement for all of them. Answers stand in the order of the requests; `again` sends a request once more. */
  readonly run: (db: Database, requests: readonly Request[]) => Promise<(Answer | typeof AGAIN)[]>;
};

/** A call lost a race that only a fresh snapshot can settle: it goes into the next statement. */
export const AGAIN: unique symbol = Symbol('again');

/** More rows save little a row and make the first of them wait for the last: past a hundred the gain is below 5 %. */
const MOST_ROWS = 128;
/** One statement is worked on by the database while the next is written: a third would only split them smaller. */
const MOST_IN_FLIGHT = 2;
/**
 * A second statement goes only if it holds at least this share of the rows under way: a statement of a few rows costs
 * nearly as much as one of many, and while the first is worked on more of them come. With few callers it goes at once.
 */
const LEAST_SHARE = 0.5;
/** The longest that a call may have to wait for its statement, by how fast calls were settled lately: far below 0.1 s. */
const MOST_WAIT_MS = 40;
/**
 * So many may wait in any case: a pause of the database must not turn away what it settles in a moment afterwards, nor a
 * thousand copies of one request, which go one after the other,
 */
const LEAST_WAITING = 1_024;
/** and no more than these, however fast it seems: a bound on memory. */
const MOST_WAITING = 4_096;
/** What is taken for the speed until it is known: that of a large machine, so that a first burst is not turned away. */
const FIRST_PER_MS = 25;
/** Two statements that end in one turn of the event loop say nothing about time. */
const LEAST_MS = 0.1;
/** How much the last statement counts in what is known of the speed: ten of them are a fraction of a second. */
const NEWEST_SHARE = 0.1;
/** Every turn settles at least one call of those that met on a voucher; sixty-four in a row means something is broken. */
const MOST_TURNS = 64;

type Call<Request, Answer> = {
  readonly request: Request;
  readonly caller: number;
  readonly keys: readonly string[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  turns: number;
};

/**
 * Makes a function that gathers calls to one operation, one queue for each database.
 *
 * An idle service sends a call in the same turn of the event loop; there is no timer. Under load, calls gather while
 * the statements before them are under way. When more wait than can be settled soon, the caller that has most of them
 * waiting is refused `91` at once.
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
  /** The calls of each caller in the order of their coming; the callers in the order of their turns. */
  readonly #lanes = new Map<number, Call<Request, Answer>[]>();
  readonly #held = new Set<string>();
  readonly #pace = new Pace();
  #waiting = 0;
  #inFlight = 0;
  #rowsInFlight = 0;
  #scheduled = false;

  constructor(db: Database, operation: Operation<Request, Answer>) {
    this.#db = db;
    this.#operation = operation;
  }

  add(request: Request): Promise<Answer> {
    const caller = this.#operation.callerOf?.(request) ?? 0;
    if (this.#waiting >= this.#pace.mostWaiting() && !this.#makeRoom(caller)) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const call = { request, caller, keys: this.#operation.keysOf(request), resolve, reject, turns: 0 };
      const lane = this.#lanes.get(caller);
      if (lane) lane.push(call);
      else this.#lanes.set(caller, [call]);
      this.#waiting++;
      this.#schedule();
    });
  }

  /** Refuses the newest call of the caller with most of them, unless that is the one who asks for room. */
  #makeRoom(caller: number): boolean {
    let longest = this.#lanes.get(caller) ?? [];
    const own = longest;
    for (const lane of this.#lanes.values()) if (lane.length > longest.length) longest = lane;
    if (longest === own || longest.length <= own.length + 1) return false;
    longest.pop()?.reject(overloaded());
    this.#waiting--;
    return true;
  }

  #mayGo(): boolean {
    return (
      this.#inFlight === 0 || (this.#inFlight < MOST_IN_FLIGHT && this.#waiting >= this.#rowsInFlight * LEAST_SHARE)
    );
  }

  /**
   * After the input that has arrived is read, so that what came in together is sent together. A full statement has nothing to
   * wait for: with more than a thousand busy sockets, reading the input can take the event loop seconds.
   */
  #schedule(): void {
    if (!this.#mayGo()) return;
    if (this.#waiting >= MOST_ROWS) {
      this.#send();
      return;
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (!this.#mayGo()) return;
    const calls = this.#take();
    if (calls.length === 0) return;
    this.#inFlight++;
    this.#rowsInFlight += calls.length;
    const wasBusy = this.#waiting > 0;
    void this.#settle(calls).finally(() => {
      this.#inFlight--;
      this.#rowsInFlight -= calls.length;
      this.#pace.settled(calls.length, wasBusy);
      for (const call of calls) for (const key of call.keys) this.#held.delete(key);
      if (this.#waiting > 0) this.#schedule();
    });
    if (this.#waiting > 0) this.#schedule();
  }

  /** The calls that can go now, one of each caller in turn: none whose voucher or reference is under way. */
  #take(): Call<Request, Answer>[] {
    const taken: Call<Request, Answer>[] = [];
    // A call that must wait holds its keys too, so that those behind it for the same voucher do not overtake it.
    const passed = new Set<string>();
    const lanes = [...this.#lanes].map(([caller, calls]) => ({ caller, calls, at: 0, left: [] as typeof calls }));
    let goesOn = true;
    while (goesOn && taken.length < MOST_ROWS) {
      goesOn = false;
      for (const lane of lanes) {
        if (taken.length === MOST_ROWS) break;
        const call = this.#next(lane, passed);
        if (!call) continue;
        taken.push(call);
        goesOn = true;
      }
    }
    for (const { caller, calls, at, left } of lanes) {
      if (at === 0) continue;
      // Who was served stands behind those who were not.
      this.#lanes.delete(caller);
      const rest = left.length > 0 ? [...left, ...calls.slice(at)] : calls.slice(at);
      if (rest.length > 0) this.#lanes.set(caller, rest);
    }
    this.#waiting -= taken.length;
    return taken;
  }

  /** The first call of a lane that can go, with its keys held for it. */
  #next(lane: Lane<Request, Answer>, passed: Set<string>): Call<Request, Answer> | undefined {
    while (lane.at < lane.calls.length) {
      const call = lane.calls[lane.at++] as Call<Request, Answer>;
      if (!call.keys.some((key) => this.#held.has(key) || passed.has(key))) {
        for (const key of call.keys) this.#held.add(key);
        return call;
      }
      for (const key of call.keys) passed.add(key);
      lane.left.push(call);
    }
    return undefined;
  }

  async #settle(calls: readonly Call<Request, Answer>[]): Promise<void> {
    const requests = calls.map((call) => call.request);
    try {
      const answers = await retrying(() => this.#operation.run(this.#db, requests));
      for (let index = calls.length - 1; index >= 0; index--) {
        const call = calls[index] as Call<Request, Answer>;
        const answer = answers[index];
        if (answer !== AGAIN) call.resolve(answer as Answer);
        else if (++call.turns < MOST_TURNS) this.#putBack(call);
        else call.reject(overloaded());
      }
    } catch (error) {
      for (const call of calls) call.reject(error);
      if (!isAway(error)) return;
      // Those behind them would wait as long, only to be told the same. They were not sent: nothing of them can have happened.
      const waiting = [...this.#lanes.values()].flat();
      this.#lanes.clear();
      this.#waiting = 0;
      for (const call of waiting) call.reject(error);
    }
  }

  /** Before all others of its caller: it came before them. */
  #putBack(call: Call<Request, Answer>): void {
    this.#waiting++;
    const lane = this.#lanes.get(call.caller);
    if (lane) lane.unshift(call);
    else this.#lanes.set(call.caller, [call]);
  }
}

type Lane<Request, Answer> = {
  readonly calls: readonly Call<Request, Answer>[];
  readonly left: Call<Request, Answer>[];
  at: number;
};

function overloaded(): Refusal {
  return new Refusal('91', { retryAfterSeconds: 1 });
}

/** How fast calls are settled while there is always one waiting, and so how many of them may wait. */
class Pace {
  #perMs = FIRST_PER_MS;
  #lastAt = 0;
  #wasBusy = false;

  /** A statement is over; `isBusy`: when it was sent, calls were left that had to wait for the next one. */
  settled(rows: number, isBusy: boolean): void {
    const now = performance.now();
    // The time since the last one tells something only where there was work all along.
    if (isBusy && this.#wasBusy) {
      const perMs = rows / Math.max(LEAST_MS, now - this.#lastAt);
      this.#perMs += (perMs - this.#perMs) * NEWEST_SHARE;
    }
    this.#lastAt = now;
    this.#wasBusy = isBusy;
  }

  mostWaiting(): number {
    return Math.min(MOST_WAITING, Math.max(LEAST_WAITING, this.#perMs * MOST_WAIT_MS));
  }
}
