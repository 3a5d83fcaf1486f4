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
 * A second round starts only with at least this share of the rows in flight. A small call costs nearly as
 * much as a large one, and more requests arrive while the first round runs. With few callers, the second
 * round starts at once.
 */
const SECOND_ROUND_SHARE = 0.5;
/** A call that takes longer (it waits for a lock, or its server is away) does not hold the others up. */
const HOLDS_MS = 100;

/** Starts the calls of a process. @param inFlightMax the largest number of rounds at one moment */
export class Rounds {
  readonly #inFlightMax: number;
  /** The queues with waiting requests, by operation, in the order of the operations' turns. */
  readonly #turns = new Map<unknown, Set<Waiting>>();
  #inFlight = 0;
  #rowsInFlight = 0;
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
    if (this.#scheduled || !this.#mayStart()) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#start();
    });
  }

  #mayStart(): boolean {
    if (this.#turns.size === 0) return false;
    if (this.#inFlight === 0) return true;
    if (this.#inFlight === this.#inFlightMax) return false;
    let waiting = 0;
    for (const queues of this.#turns.values()) for (const queue of queues) waiting += queue.waiting;
    return waiting >= this.#rowsInFlight * SECOND_ROUND_SHARE;
  }

  #start(): void {
    while (this.#mayStart()) {
      const [operation, queues] = this.#turns.entries().next().value as [unknown, Set<Waiting>];
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
        if (queue.waiting > 0) again();
        void call.ended.then(again);
      }
      if (calls.length > 0) this.#hold(calls);
    }
  }

  /** Counts a round as in flight until its calls have ended, or take too long. */
  #hold(calls: readonly InFlight[]): void {
    const rows = calls.reduce((sum, call) => sum + call.rows, 0);
    this.#inFlight++;
    this.#rowsInFlight += rows;
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      clearTimeout(timer);
      this.#inFlight--;
      this.#rowsInFlight -= rows;
      this.#schedule();
    };
    const timer = setTimeout(release, HOLDS_MS);
    void Promise.allSettled(calls.map(({ ended }) => ended)).then(release);
  }
}
