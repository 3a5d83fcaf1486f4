/** The largest call, and how many calls of a queue are in flight at one moment. */
export type Limits = { readonly rowsMax: number; readonly inFlightMax: number };
/**
 * On one server: above a hundred rows the gain is below 5 %, and the first row waits for the last. The
 * database works on one call while the next one is written. A third call would only make each smaller.
 */
export const ON_ONE_SERVER: Limits = { rowsMax: 128, inFlightMax: 2 };
/**
 * Over shards a call costs some 10 ms, however small, because Citus plans its statements again. Its worker
 * has the calls of other buckets to work on while the next one is written.
 */
export const OVER_SHARDS: Limits = { rowsMax: 512, inFlightMax: 1 };

/** The longest wait of a request for its call, estimated from the recent rate: far below 0.1 s. */
const WAIT_MAX_MS = 40;
/**
 * So many may always wait. A short pause of the database must not decline what is answered a moment
 * later, nor a thousand copies of one request, which go one after the other.
 */
const WAITING_MIN = 1_024;
/** Never more, however fast calls seem to be: a bound on memory. */
const WAITING_MAX = 4_096;
/** The rate of a large machine, assumed until one was measured, so that a first burst is not declined. */
const FIRST_RATE_PER_MS = 25;
/** Two calls that end in one turn of the event loop say nothing about time. */
const INTERVAL_MIN_MS = 0.1;
/** The weight of the newest call in the rate: ten of them are a fraction of a second. */
const NEWEST_WEIGHT = 0.1;

/** How fast requests are answered while others wait, and so how many may wait. */
export class Rate {
  #perMs = FIRST_RATE_PER_MS;
  #lastAt = 0;
  #wasBusy = false;

  /** Called when a call has ended. `isBusy`: requests were left waiting when it was sent. */
  answered(rows: number, isBusy: boolean): void {
    const now = performance.now();
    // The time since the last call counts only if there was work all along.
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
