/** The longest that a request may wait for its call, judged by the recent rate: far below 0.1 s. */
const WAIT_MAX_MS = 40;
/**
 * As many may wait in any case: a pause of the database must not turn away what it settles a moment
 * later, nor a thousand copies of one request, which go one after the other.
 */
const WAITING_MIN = 1_024;
/** No more may wait, however fast calls seem to be: a bound on memory. */
const WAITING_MAX = 4_096;
/**
 * The rate that is assumed until one is known: that of a large machine, so that a first burst is not
 * turned away.
 */
const FIRST_RATE_PER_MS = 25;
/** Two calls that end in one turn of the event loop say nothing about time. */
const INTERVAL_MIN_MS = 0.1;
/** The weight of the newest call in the rate: ten of them are a fraction of a second. */
const NEWEST_WEIGHT = 0.1;

/** How fast requests are settled while one is always waiting, and so how many of them may wait. */
export class Rate {
  #perMs = FIRST_RATE_PER_MS;
  #lastAt = 0;
  #wasBusy = false;

  /** A call has ended; `isBusy`: when it was sent, requests were left that had to wait for the next one. */
  settled(rows: number, isBusy: boolean): void {
    const now = performance.now();
    // The time since the last call says something only where there was work all along.
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
