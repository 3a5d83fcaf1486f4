import type { Database } from './pool.ts';

type TurnsOptions = {
  /** How many pieces of work run at once while no till is busy. While tills are busy, one runs at a time. */
  readonly atOnce: number;
  /**
   * Whether each piece of work is followed by a rest of the same length while tills are busy. The cores of
   * the service and the database are then free for tills half of the time.
   */
  readonly rests?: boolean;
};

/** The shortest rest: the service also spends time on an answer after the work in the database. */
const REST_MIN_MS = 10;
/** The longest rest: a long piece of work is not followed by a long pause. */
const REST_MAX_MS = 1_000;

/** How much a piece of work counts in the average of their durations. */
const WEIGHT = 0.2;
/** The longest wait that is reported: a queue may be done sooner than its average says. */
const WAIT_MAX_S = 60;

/** Admits work to the database in the order of its requests, and less of it while tills are busy. */
export class Turns {
  readonly #db: Pick<Database, 'isBusy'>;
  readonly #options: TurnsOptions;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;
  /** The average duration of a piece of work with its rest. */
  #lastsMs = 0;

  constructor(db: Pick<Database, 'isBusy'>, options: TurnsOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** The number of pieces of work that run, rest or wait. */
  get size(): number {
    return this.#inside + this.#waiting.length;
  }

  /**
   * Returns after how many seconds a client that was refused finds room: what the pieces of work that are
   * inside will last, and up to twice as long, so that clients refused at once do not return at once.
   */
  get waitSeconds(): number {
    const atOnce = this.#db.isBusy() ? 1 : this.#options.atOnce;
    const lastMs = (this.size * this.#lastsMs) / atOnce;
    return Math.min(Math.ceil((lastMs * (1 + Math.random())) / 1_000), WAIT_MAX_S) || 1;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#hasRoom())
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#inside++;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.#leave(performance.now() - startedAt);
    }
  }

  #hasRoom(): boolean {
    return this.#inside < (this.#db.isBusy() ? 1 : this.#options.atOnce);
  }

  #leave(tookMs: number): void {
    const rests = this.#options.rests === true && this.#db.isBusy();
    const restMs = rests ? Math.min(Math.max(tookMs, REST_MIN_MS), REST_MAX_MS) : 0;
    this.#lastsMs += WEIGHT * (tookMs + restMs - this.#lastsMs);
    if (rests) setTimeout(() => this.#letIn(), restMs).unref();
    else this.#letIn();
  }

  #letIn(): void {
    this.#inside--;
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      this.#inside++;
      this.#waiting.shift()?.();
    }
  }
}
