/** The largest number of rows in a call, and of calls in flight at one moment. */
export type Limits = { readonly rowsMax: number; readonly inFlightMax: number };
/**
 * The limits on one server. Above a hundred rows the gain is below 5 %, and the first row waits for the last.
 * The database works on one call while the next one is written. A third call would only make each one
 * smaller.
 */
export const ON_ONE_SERVER: Limits = { rowsMax: 128, inFlightMax: 2 };
/**
 * The limits on several shards. A call takes some 10 ms, however small, because Citus plans its statements
 * again. The worker serves other buckets while the next call is written.
 */
export const OVER_SHARDS: Limits = { rowsMax: 512, inFlightMax: 1 };

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
export class Rate {
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
