/** The longest time that a timer of every runtime takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** Why a watch ended what it watched. */
type Ended = 'timedOut' | 'aborted';

/** Thrown out of `Watch.over`. */
export class WatchEnded extends Error {
  override readonly name = 'WatchEnded';
  readonly why: Ended;
  readonly reason: unknown;

  constructor(why: Ended, reason: unknown) {
    super(why);
    this.why = why;
    this.reason = reason;
  }
}

/** Watches over an attempt: ends it when its time is over or its caller wants no more, also where fetch does not listen. */
export class Watch {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended: WatchEnded | undefined;
  #reject: ((ended: WatchEnded) => void) | undefined;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    this.#onAbort = () => this.#end(new WatchEnded('aborted', outer?.reason));
    if (outer?.aborted) this.#onAbort();
    else outer?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** For fetch. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Waits for something, for a time.
   * @throws WatchEnded when the time is over, or the caller has aborted
   */
  async over<T>(ms: number, run: () => Promise<T>): Promise<T> {
    if (this.#ended) throw this.#ended;
    this.#timer = setTimeout(
      () => this.#end(new WatchEnded('timedOut', undefined)),
      Math.min(Math.max(ms, 0), LONGEST_MS),
    );
    const ended = new Promise<never>((_resolve, reject) => {
      this.#reject = reject;
    });
    const running = run();
    // Whichever loses may still fail later, when nobody is interested any more.
    running.catch(() => {});
    try {
      return await Promise.race([running, ended]);
    } catch (error) {
      // What fetch throws when it is aborted is told as the reason why it was.
      throw this.#ended ?? error;
    } finally {
      clearTimeout(this.#timer);
      this.#reject = undefined;
    }
  }

  /** Stops watching, and closes what is still open. */
  close(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#onAbort);
    this.#controller.abort();
  }

  #end(ended: WatchEnded): void {
    this.#ended ??= ended;
    this.#reject?.(this.#ended);
    this.#controller.abort();
  }
}

/**
 * Waits.
 * @returns false when the caller aborted meanwhile
 */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted) return false;
  return new Promise((resolve) => {
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve(!signal?.aborted);
    }
    const timer = setTimeout(done, Math.min(ms, LONGEST_MS));
    signal?.addEventListener('abort', done, { once: true });
  });
}
