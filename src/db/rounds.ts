/**
 * The rounds of the calls of the hot path. A call costs much more than a row in it, so calls should be large.
 * Operations take turns, and the batcher's queues fill while another operation has its round. With a call of
 * each of five operations in flight all the time, each call would hold a fifth of the requests. Over shards,
 * the requests of a round are sent to all their buckets at once, and reach their next step together.
 */

/** A call in flight. */
export type InFlight = { readonly rows: number; readonly ended: Promise<void> };

/** The waiting requests of an operation and a bucket. */
type Waiting = {
  readonly waiting: number;
  /** Sends a call. Returns undefined if none can be sent now. */
  send(): InFlight | undefined;
};

/**
 * A second round of an operation starts only with at least this share of its rows in flight. A small call
 * costs nearly as much as a large one, and more requests arrive while the first round runs. With few callers,
 * the second round starts at once.
 */
const SECOND_ROUND_SHARE = 0.5;
/**
 * A call that takes longer does not hold the others up: it is a large list, it waits for a lock, or its
 * server is away. Calls of tills take 1 to 15 ms.
 */
const HOLDS_MS = 20;

/** Starts the calls of a process. @param inFlightMax the largest number of rounds at one moment */
export class Rounds {
  readonly #inFlightMax: number;
  /** The queues with waiting requests, by operation, in the order of the operations' turns. */
  readonly #turns = new Map<unknown, Set<Waiting>>();
  /** The rows in flight of each operation that has a round. */
  readonly #rowsInFlight = new Map<unknown, number>();
  #inFlight = 0;
  #scheduled = false;

  constructor(inFlightMax: number) {
    this.#inFlightMax = inFlightMax;
  }

  /**
   * Makes a queue wait for the round of its operation. A round starts after pending input has been read, so
   * that requests that arrived together share it. With a full call it starts at once: with more than a
   * thousand busy sockets, reading the input can take seconds.
   */
  enter(operation: unknown, queue: Waiting, isFull: boolean): void {
    const queues = this.#turns.get(operation);
    if (queues) queues.add(queue);
    else this.#turns.set(operation, new Set([queue]));
    if (isFull) this.#start();
    else this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#next() === undefined) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#start();
    });
  }

  /** Returns the first operation that may have a round now. */
  #next(): unknown {
    if (this.#inFlight === this.#inFlightMax) return undefined;
    for (const [operation, queues] of this.#turns) {
      const rowsInFlight = this.#rowsInFlight.get(operation) ?? 0;
      if (rowsInFlight === 0) return operation;
      let waiting = 0;
      for (const queue of queues) waiting += queue.waiting;
      if (waiting >= rowsInFlight * SECOND_ROUND_SHARE) return operation;
    }
    return undefined;
  }

  #start(): void {
    for (let operation = this.#next(); operation !== undefined; operation = this.#next()) {
      const queues = this.#turns.get(operation) ?? [];
      this.#turns.delete(operation);
      const calls: InFlight[] = [];
      for (const queue of queues) {
        const call = queue.send();
        if (!call) continue;
        calls.push(call);
        // Requests that this call had no room for, or that wait for one of its vouchers.
        const again = () => {
          if (queue.waiting > 0) this.enter(operation, queue, false);
        };
        again();
        void call.ended.then(again);
      }
      if (calls.length > 0) this.#hold(operation, calls);
    }
  }

  /** Counts a round as in flight until its calls have ended, or take too long. */
  #hold(operation: unknown, calls: readonly InFlight[]): void {
    const rows = calls.reduce((sum, call) => sum + call.rows, 0);
    const count = (added: number) =>
      this.#rowsInFlight.set(operation, (this.#rowsInFlight.get(operation) ?? 0) + added);
    this.#inFlight++;
    count(rows);
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      clearTimeout(timer);
      this.#inFlight--;
      count(-rows);
      this.#schedule();
    };
    const timer = setTimeout(release, HOLDS_MS);
    void Promise.allSettled(calls.map(({ ended }) => ended)).then(release);
  }
}
