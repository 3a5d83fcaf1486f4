import type { Metrics } from '../monitor/metrics.ts';
import type { Span, StatementTrace, Tracing } from '../monitor/tracing.ts';
import { Refusal } from '../refusal.ts';
import type { Buckets } from './buckets.ts';
import { isAway, retrying } from './errors.ts';
import { AGAIN, type Operation } from './operation.ts';
import type { Database } from './pool.ts';
import { type InFlight, Rounds } from './rounds.ts';

/** The largest number of rows in a call, and of calls in flight at one moment. */
type Limits = { readonly rowsMax: number; readonly inFlightMax: number };
/**
 * The limits on one server. Above a hundred rows the gain is below 5 %, and the first row waits for the last.
 * The database works on one call while the next one is written. A third call would only make each one
 * smaller.
 */
const ON_ONE_SERVER: Limits = { rowsMax: 128, inFlightMax: 2 };
/** The limits on several shards. The requests of an operation are spread over several calls. */
const OVER_SHARDS: Limits = { rowsMax: 512, inFlightMax: 1 };

/**
 * In every turn, at least one of the requests for a voucher is answered. After 64 turns something is broken.
 */
const TURNS_MAX = 64;

type Observers = { readonly metrics?: Metrics | undefined; readonly tracing?: Tracing | undefined };
type Options = Observers & { readonly buckets?: Pick<Buckets, 'isSharded'> };

type Waiting<Request, Answer> = {
  readonly request: Request;
  readonly merchant: number;
  readonly keys: readonly string[];
  readonly addedAt: number;
  readonly span: Span | undefined;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  turns: number;
};

/**
 * Batches the requests of each operation and bucket.
 *
 * An idle service sends a request in the same turn of the event loop; no timer delays it. Under load,
 * requests wait for the round of their operation (rounds.ts). If more requests wait than can be answered
 * soon, the merchant with the most waiting requests is declined with `91` at once.
 */
export class Batcher {
  readonly #db: Database;
  readonly #observers: Observers;
  readonly #limits: Limits;
  readonly #rounds: Rounds;
  readonly #queues = new Map<unknown, Map<number, Queue<unknown, unknown, unknown>>>();

  constructor(db: Database, { buckets, ...observers }: Options = {}) {
    this.#db = db;
    this.#observers = observers;
    this.#limits = buckets?.isSharded ? OVER_SHARDS : ON_ONE_SERVER;
    this.#rounds = new Rounds(this.#limits.inFlightMax);
  }

  /**
   * Adds a request to the next call of its operation.
   * @param bucket the bucket of the operation's rows
   * @throws Refusal `91` under overload; errors of the database; what `answer` throws for this request
   */
  add<Request, Row, Answer>(
    operation: Operation<Request, Row, Answer>,
    bucket: number,
    request: Request,
  ): Promise<Answer> {
    let byBucket = this.#queues.get(operation);
    if (!byBucket) {
      byBucket = new Map();
      this.#queues.set(operation, byBucket);
    }
    let queue = byBucket.get(bucket) as Queue<Request, Row, Answer> | undefined;
    if (!queue) {
      queue = new Queue(this.#db, operation, bucket, this.#limits, this.#rounds, this.#observers);
      byBucket.set(bucket, queue as Queue<unknown, unknown, unknown>);
    }
    return queue.add(request);
  }
}

class Queue<Request, Row, Answer> {
  readonly #db: Database;
  readonly #operation: Operation<Request, Row, Answer>;
  readonly #bucket: number;
  readonly #limits: Limits;
  readonly #rounds: Rounds;
  readonly #metrics: Metrics | undefined;
  readonly #tracing: Tracing | undefined;
  /**
   * The requests of each merchant in the order of arrival, with the merchants in the order of their turns.
   */
  readonly #lanes = new Map<number, Waiting<Request, Answer>[]>();
  readonly #held = new Set<string>();
  readonly #rate = new Rate();
  #waiting = 0;
  #inFlight = 0;

  constructor(
    db: Database,
    operation: Operation<Request, Row, Answer>,
    bucket: number,
    limits: Limits,
    rounds: Rounds,
    { metrics, tracing }: Observers,
  ) {
    this.#limits = limits;
    this.#rounds = rounds;
    this.#metrics = metrics;
    this.#tracing = tracing;
    this.#db = db;
    this.#operation = operation;
    this.#bucket = bucket;
  }

  /** How many requests wait for a call. */
  get waiting(): number {
    return this.#waiting;
  }

  add(request: Request): Promise<Answer> {
    const merchant = this.#operation.merchantOf?.(request) ?? 0;
    if (this.#waiting >= this.#rate.waitingMax() && !this.#makeRoom(merchant))
      return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const waiting = {
        request,
        merchant,
        keys: this.#operation.keysOf(request),
        addedAt: this.#metrics || this.#tracing ? performance.now() : 0,
        span: this.#tracing?.current(),
        resolve,
        reject,
        turns: 0,
      };
      const lane = this.#lanes.get(merchant);
      if (lane) lane.push(waiting);
      else this.#lanes.set(merchant, [waiting]);
      this.#waiting++;
      this.#rounds.enter(this.#operation, this, this.#waiting >= this.#limits.rowsMax);
    });
  }

  /**
   * Declines the newest request of the merchant with the most waiting requests. Returns false if that is the
   * merchant that needs the room.
   */
  #makeRoom(merchant: number): boolean {
    let longest = this.#lanes.get(merchant) ?? [];
    const own = longest;
    for (const lane of this.#lanes.values()) if (lane.length > longest.length) longest = lane;
    if (longest === own || longest.length <= own.length + 1) return false;
    longest.pop()?.reject(overloaded());
    this.#waiting--;
    return true;
  }

  /**
   * Sends a call for as many waiting requests as one may hold.
   * @returns the number of its rows, and when it has ended; undefined if no request can be sent now
   */
  send(): InFlight | undefined {
    if (this.#inFlight === this.#limits.inFlightMax) return undefined;
    const taken = this.#take();
    if (taken.length === 0) return undefined;
    this.#metrics?.batched(taken.length, performance.now() - (taken[0]?.addedAt ?? 0));
    const traced = this.#tracing?.batched(taken);
    this.#inFlight++;
    const wasBusy = this.#waiting > 0;
    const ended = this.#finish(taken, traced).finally(() => {
      this.#inFlight--;
      this.#rate.answered(taken.length, wasBusy);
      for (const { keys } of taken) for (const key of keys) this.#held.delete(key);
    });
    return { rows: taken.length, ended };
  }

  /**
   * Takes the requests that can be sent now, one of each merchant in turn. None of them shares a voucher or a
   * reference with a request in flight.
   */
  #take(): Waiting<Request, Answer>[] {
    const taken: Waiting<Request, Answer>[] = [];
    // A waiting request also holds its keys, so that later requests for the same voucher do not overtake it.
    const passed = new Set<string>();
    const lanes = [...this.#lanes].map(([merchant, requests]) => ({
      merchant,
      requests,
      at: 0,
      left: [] as typeof requests,
    }));
    let hasMore = true;
    while (hasMore && taken.length < this.#limits.rowsMax) {
      hasMore = false;
      for (const lane of lanes) {
        if (taken.length === this.#limits.rowsMax) break;
        const next = this.#next(lane, passed);
        if (!next) continue;
        taken.push(next);
        hasMore = true;
      }
    }
    for (const { merchant, requests, at, left } of lanes) {
      if (at === 0) continue;
      // A merchant that was served moves behind those that were not.
      this.#lanes.delete(merchant);
      const rest = left.length > 0 ? [...left, ...requests.slice(at)] : requests.slice(at);
      if (rest.length > 0) this.#lanes.set(merchant, rest);
    }
    this.#waiting -= taken.length;
    return taken;
  }

  /** Takes the first request of a lane that can be sent, and holds its keys. */
  #next(lane: Lane<Request, Answer>, passed: Set<string>): Waiting<Request, Answer> | undefined {
    while (lane.at < lane.requests.length) {
      const waiting = lane.requests[lane.at++] as Waiting<Request, Answer>;
      if (!waiting.keys.some((key) => this.#held.has(key) || passed.has(key))) {
        for (const key of waiting.keys) this.#held.add(key);
        return waiting;
      }
      for (const key of waiting.keys) passed.add(key);
      lane.left.push(waiting);
    }
    return undefined;
  }

  async #finish(
    taken: readonly Waiting<Request, Answer>[],
    traced: StatementTrace | undefined,
  ): Promise<void> {
    const requests = taken.map(({ request }) => request);
    let rows: readonly (Row | typeof AGAIN)[];
    try {
      rows = await retrying(() => this.#operation.run(this.#db, requests, this.#bucket));
      traced?.end();
    } catch (error) {
      traced?.end(error);
      for (const { reject } of taken) reject(error);
      // The waiting requests would only wait as long and then fail too. They were not sent, so they had no
      // effect.
      if (isAway(error)) this.#rejectWaiting(error);
      return;
    }
    for (let index = taken.length - 1; index >= 0; index--) {
      const waiting = taken[index] as Waiting<Request, Answer>;
      const row = rows[index] as Row | typeof AGAIN;
      if (row !== AGAIN) this.#answer(waiting, row);
      else if (++waiting.turns < TURNS_MAX) this.#putBack(waiting);
      else waiting.reject(overloaded());
    }
  }

  #answer({ request, resolve, reject }: Waiting<Request, Answer>, row: Row): void {
    try {
      resolve(this.#operation.answer(request, row));
    } catch (error) {
      reject(error);
    }
  }

  #rejectWaiting(error: unknown): void {
    const waiting = [...this.#lanes.values()].flat();
    this.#lanes.clear();
    this.#waiting = 0;
    for (const { reject } of waiting) reject(error);
  }

  /** Puts a request back before all others of its merchant, since it arrived first. */
  #putBack(waiting: Waiting<Request, Answer>): void {
    this.#waiting++;
    const lane = this.#lanes.get(waiting.merchant);
    if (lane) lane.unshift(waiting);
    else this.#lanes.set(waiting.merchant, [waiting]);
  }
}

type Lane<Request, Answer> = {
  readonly requests: readonly Waiting<Request, Answer>[];
  readonly left: Waiting<Request, Answer>[];
  at: number;
};

function overloaded(): Refusal {
  return new Refusal('91');
}

/** The longest wait of a request for its call, estimated from the recent rate. It is far below 0.1 s. */
const WAIT_MAX_MS = 40;
/**
 * This many requests may always wait. A short pause of the database must not decline requests that it would
 * answer a moment later, nor a thousand copies of one request, which are processed one after the other.
 */
const WAITING_MIN = 1_024;
/** The most requests that may wait, however fast calls seem to be: a bound on memory. */
const WAITING_MAX = 4_096;
/** The rate of a large machine, assumed until one was measured, so that a first burst is not declined. */
const FIRST_RATE_PER_MS = 25;
/** Two calls that end in the same turn of the event loop give no measurement. */
const INTERVAL_MIN_MS = 0.1;
/** The weight of the newest call in the rate. Ten calls take a fraction of a second. */
const NEWEST_WEIGHT = 0.1;

/** Measures how fast requests are answered while others wait, which limits how many may wait. */
class Rate {
  #perMs = FIRST_RATE_PER_MS;
  #lastAt = 0;
  #wasBusy = false;

  /** Records the end of a call. `isBusy`: requests were left waiting when it was sent. */
  answered(rows: number, isBusy: boolean): void {
    const now = performance.now();
    // The time since the last call counts only if there was work throughout.
    if (isBusy && this.#wasBusy) {
      const perMs = rows / Math.max(INTERVAL_MIN_MS, now - this.#lastAt);
      this.#perMs += (perMs - this.#perMs) * NEWEST_WEIGHT;
    }
    this.#lastAt = now;
    this.#wasBusy = isBusy;
  }

  waitingMax(): number {
    return Math.min(WAITING_MAX, Math.max(WAITING_MIN, this.#perMs * WAIT_MAX_MS));
  }
}
