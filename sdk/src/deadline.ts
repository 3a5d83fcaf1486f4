/** The longest time that timers of every runtime accept. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Thrown by `Deadline.run` when the time is over, or the caller has aborted. */
export class Ended extends Error {
  readonly why: 'timedOut' | 'aborted';

  constructor(why: 'timedOut' | 'aborted') {
    super(why);
    this.why = why;
  }
}

/** Ends an attempt when its time is over or its caller aborts, also where fetch ignores its signal. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #ended: Ended | undefined;
  #reject: ((ended: Ended) => void) | undefined;
  readonly #abort = () => this.#end('aborted');

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#abort();
    else outer?.addEventListener('abort', this.#abort, { once: true });
  }

  /** For fetch. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Runs a step, for at most a time.
   * @throws Ended; whatever the step throws
   */
  async run<T>(ms: number, step: () => Promise<T>): Promise<T> {
    if (this.#ended) throw this.#ended;
    const timer = setTimeout(() => this.#end('timedOut'), Math.min(Math.max(ms, 0), TIMER_MAX_MS));
    const ended = new Promise<never>((_resolve, reject) => {
      this.#reject = reject;
    });
    const running = step();
    // The loser of the race may fail later, when its promise is no longer awaited.
    running.catch(() => {});
    try {
      return await Promise.race([running, ended]);
    } catch (error) {
      // Once it is over, the error of fetch only says that it was aborted.
      throw this.#ended ?? error;
    } finally {
      clearTimeout(timer);
      this.#reject = undefined;
    }
  }

  /** Closes the connection, if it is still open. */
  close(): void {
    this.#outer?.removeEventListener('abort', this.#abort);
    this.#controller.abort();
  }

  #end(why: Ended['why']): void {
    this.#ended ??= new Ended(why);
    this.#reject?.(this.#ended);
    this.#controller.abort();
  }
}

/** Waits. @returns false when the caller aborted */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted) return false;
  return new Promise((resolve) => {
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve(!signal?.aborted);
    }
    const timer = setTimeout(done, Math.min(ms, TIMER_MAX_MS));
    signal?.addEventListener('abort', done, { once: true });
  });
}
