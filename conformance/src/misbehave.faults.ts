/** The ways in which the misbehaving server treats requests. */

export const FAULTS = [
  /** The connection breaks, and the request has no effect. */
  'cut before',
  /** The request has its effect, and the connection breaks before the answer. */
  'cut after',
  /** The connection breaks in the middle of the answer. */
  'cut half',
  /** The request has its effect, and there is never an answer. */
  'silent',
  /** The connection breaks, and the request has its effect later: perhaps after the next one. */
  'late',
  /** The request arrives twice; the answer is that to the second copy. */
  'twice',
  /** The answer takes a while. */
  'slow',
  /** 503 with `Retry-After`, without an effect. */
  'busy',
  /** 429 with `Retry-After`, without an effect. */
  'too many',
  /** The request has its effect, and the answer is that of a broken proxy: HTTP 502 in HTML. */
  'bad gateway',
  /** The request has its effect, and the answer is a page in HTML with HTTP 200. */
  'page',
  /** The right answer as `text/html`. */
  'wrong type',
  /** The answer to an earlier redemption. */
  'mixed up',
] as const;

export type Fault = (typeof FAULTS)[number];

/** Numbers from 0 to 1 that depend on a seed alone (mulberry32). */
export function randomBy(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The share of requests with a fault. */
const FAULTY = 0.4;
/** How many requests about one reference may have a fault: a client can come to an end. */
const FAULTS_MAX = 4;

/** Chooses the faults of requests. */
export class Faults {
  readonly #random: () => number;
  readonly #byReference = new Map<string, number>();
  /** How often each was chosen. */
  readonly counts = new Map<Fault, number>();

  constructor(seed: number) {
    this.#random = randomBy(seed);
  }

  /** The fault of a request about a reference; undefined for none. */
  next(reference: string): Fault | undefined {
    const before = this.#byReference.get(reference) ?? 0;
    if (before >= FAULTS_MAX || this.#random() >= FAULTY) return undefined;
    this.#byReference.set(reference, before + 1);
    const fault = FAULTS[Math.floor(this.#random() * FAULTS.length)] as Fault;
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    return fault;
  }

  /** A time in milliseconds, up to a longest one. */
  time(longest: number): number {
    return Math.floor(this.#random() * longest);
  }
}
