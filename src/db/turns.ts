import type { Database } from './pool.ts';

export type TurnsOptions = {
  /** How much work runs at once while no till is busy. While tills are, one piece runs at a time. */
  readonly atOnce: number;
  /**
   * Whether a piece of work rests afterwards, for as long as it took, while tills are busy: so the cores
   * of service and database are free for tills half of the time.
   */
  readonly rests?: boolean;
};

/** The shortest rest: an answer costs the service time after its work in the database. */
const REST_MIN_MS = 10;
/** The longest rest: a long piece of work is not followed by a long silence. */
const REST_MAX_MS = 1_000;

/** Lets work into the database in the order of its requests, and less of it while tills are busy. */
export class Turns {
  readonly #db: Pick<Database, 'isBusy'>;
  readonly #options: TurnsOptions;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(db: Pick<Database, 'isBusy'>, options: TurnsOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** How much work runs, rests or waits. */
  get size(): number {
    return this.#inside + this.#waiting.length;
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
    const restMs = Math.min(Math.max(tookMs, REST_MIN_MS), REST_MAX_MS);
    if (this.#options.rests && this.#db.isBusy()) setTimeout(() => this.#letIn(), restMs).unref();
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
