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
