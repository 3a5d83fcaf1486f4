import type { Admission } from './admission.ts';

/**
 * Refusals go out at once, as long as there are no more than half as many as answers; beyond that they wait for their turn, and so
 * do the clients who would come back at once. A refusal takes the processor nearly as long as a redemption, most of it for the
 * system's part in writing and reading: a client that is told 25,000 times a second takes what was to serve the others.
 */
const SHARE = 0.5;
/** So many go out in any case, also where little is answered. */
const LEAST_PER_MS = 2;
/** And as many as it takes for none to wait longer than this. */
const MOST_HELD_MS = 1_000;
/** What was not used is left for a moment: a few hundred who come at once are told at once. */
const SAVED_MS = 50;
const BEAT_MS = 2;
/** A bound on memory: over one connection a client can send as many calls as it likes. Beyond it they are told at once. */
const MOST_HELD = 10_000;

/** Lets refusals go out as fast as it does not hurt those who were let in, the oldest first. */
export class RefusalPace {
  readonly #admission: Admission;
  #held: (() => void)[] = [];
  /** Of those held, the first that has not gone out. */
  #next = 0;
  /** How many may go out now. */
  #may = 0;
  #countedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  /** Calls `refuse`, now or in its turn. */
  add(refuse: () => void): void {
    if (!this.#timer) this.#count();
    if (this.#timer ? this.#waiting >= MOST_HELD : this.#may >= 1) {
      this.#may--;
      refuse();
      return;
    }
    this.#held.push(refuse);
    this.#timer ??= setTimeout(() => this.#release(), BEAT_MS);
  }

  get #waiting(): number {
    return this.#held.length - this.#next;
  }

  #count(): void {
    const now = performance.now();
    const perMs = Math.max(LEAST_PER_MS, this.#admission.perMs * SHARE, this.#waiting / MOST_HELD_MS);
    this.#may = Math.min(this.#may + (now - this.#countedAt) * perMs, perMs * SAVED_MS);
    this.#countedAt = now;
  }

  #release(): void {
    this.#timer = undefined;
    this.#count();
    const until = Math.min(this.#held.length, this.#next + Math.floor(this.#may));
    this.#may -= until - this.#next;
    while (this.#next < until) this.#held[this.#next++]?.();
    if (this.#waiting > 0) this.#timer = setTimeout(() => this.#release(), BEAT_MS);
    // What went out is let go of, in strides.
    if (this.#waiting === 0 || this.#next > MOST_HELD) {
      this.#held = this.#held.slice(this.#next);
      this.#next = 0;
    }
  }
}
